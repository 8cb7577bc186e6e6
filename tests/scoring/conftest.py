"""Models under test, and their test requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scoring.reference import Reference, read_stored
from steelyard.scoring.assets import BaseModel, apart_of
from steelyard.scoring.engine import Engine
from steelyard.scoring.tokenizer import Tokenizer

ENGINES = ["onnxruntime-float32", "onnxruntime-int8"]


@pytest.fixture(params=ENGINES)
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[pytest.param("random", marks=pytest.mark.slow), "shipped"])
def source(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(load: Callable[[str, str], BaseModel], source: str, engine_name: str) -> BaseModel:
    """Each model on each engine."""
    return load(source, engine_name)


@pytest.fixture
def float32_model(load: Callable[[str, str], BaseModel], source: str) -> BaseModel:
    """Each model in float32."""
    return load(source, "onnxruntime-float32")


@pytest.fixture
def random_model(load: Callable[[str, str], BaseModel]) -> BaseModel:
    return load("random", "onnxruntime-float32")


@pytest.fixture
def random_engine(random_model: BaseModel) -> Engine:
    return random_model.scorer.pass_engine


@pytest.fixture
def random_tokenizer(random_model: BaseModel) -> Tokenizer:
    return random_model.tokenizer


@pytest.fixture(scope="session")
def stored(random_folder: Path) -> dict[str, np.ndarray]:
    """The random model's stored weights."""
    return read_stored(random_folder)


@pytest.fixture(scope="session")
def references(load: Callable[[str, str], BaseModel]) -> Callable[[str], Reference]:
    """Return the reference of a model that ``load`` knows, made once."""
    made: dict[str, Reference] = {}

    def get(source: str) -> Reference:
        if source not in made:
            model = load(source, "onnxruntime-float32")
            stored = read_stored(model.card.parent)
            made[source] = Reference(stored, apart=apart_of(model.manifest))
        return made[source]

    return get
