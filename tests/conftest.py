"""The models that tests of the scorer share, loaded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from random_model import write_random_model
from steelyard.scoring.assets import BASE, MANIFEST, BaseModel, load_base_model

# The same examples in every run, so that a red run is about the change. To explore:
# pytest --hypothesis-profile=default
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def random_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a base model with random weights; not to be changed."""
    folder = tmp_path_factory.mktemp("random-model")
    write_random_model(folder)
    return folder


@pytest.fixture(scope="session")
def load(request: pytest.FixtureRequest) -> Iterator[Callable[[str, str], BaseModel]]:
    """Load a model once: from ``random`` or ``shipped``, on an engine. Not to be closed."""
    loaded: dict[tuple[str, str], BaseModel] = {}

    def load_once(source: str, engine: str) -> BaseModel:
        if source == "shipped" and not (BASE / MANIFEST).exists():
            pytest.skip("this checkout has no trained base model yet")
        if (source, engine) not in loaded:
            folder = BASE if source == "shipped" else request.getfixturevalue("random_folder")
            loaded[source, engine] = load_base_model(engine, folder=folder)
        return loaded[source, engine]

    yield load_once
    for model in loaded.values():
        model.scorer.close()
