"""LoRA models in a server: loaded, kept, let go of and loaded again as tuned models are here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.errors import EngineUnavailableError, ModelWarmingError
from steelyard.families.tuned import TunedModels
from steelyard.scoring.assets import BaseModel, load_base_model, read_base_files
from steelyard.scoring.engine import Engine
from steelyard.scoring.merging import merge, read_adapter
from support.models.remote_engines import run_pass
from support.waiting import wait_until

pytest.importorskip("tritonclient.grpc")

from steelyard.triton.repository import base_source
from support.triton.fake_triton import FakeModel, FakeTriton, serving
from support.triton.triton_hosting import write_lora_artifact
from support.triton.triton_tuned import ADAPTERS, Tuned, answer, answer_alone, open_models


def remote_model(base: BaseModel, artifact: Path, sha256: str) -> FakeModel:
    """The same model as an export of it has it."""

    @cache
    def engine() -> Engine:
        files = read_base_files(base.scorer.engine, base.scorer.folder)
        merged = merge(files.weights, read_adapter(artifact).pairs, files.precision)
        return Engine(files.graph, merged, precision=files.precision, threads=1)

    def run(inputs: Any, outputs: Any) -> Any:
        return engine().run(inputs, outputs)

    return FakeModel(run, {"steelyard_sha256": sha256, "precision": "float32"})


@dataclass(frozen=True)
class World:
    """Tuned models over a base in a server."""

    triton: FakeTriton
    models: TunedModels
    base: BaseModel
    folders: dict[str, Path]
    shas: dict[str, str]

    def fetch(self, sha256: str) -> Path:
        return next(self.folders[name] for name, sha in self.shas.items() if sha == sha256)

    def hold(self, adapter: str) -> None:
        """Load a model, and use it for a moment."""
        with self.models.holding(Tuned(adapter), self.shas[adapter]):
            pass

    def answer(self, adapter: str) -> list[np.ndarray]:
        """The logits of a model that is loaded."""
        hosted = self.models.loaded(adapter)
        assert hosted is not None
        return answer(hosted)

    def alone(self, adapter: str) -> list[np.ndarray]:
        """The same without a server."""
        return answer_alone(self.folders[adapter], self.base)

    @property
    def in_server(self) -> set[str]:
        return {name for name, model in self.triton.models.items() if model.is_loaded}


@pytest.fixture
def falls_back(request: pytest.FixtureRequest) -> bool:
    return getattr(request, "param", False)


@pytest.fixture(scope="module")
def alone(random_folder: Path) -> BaseModel:
    """The base model in this process."""
    return load_base_model("onnxruntime-float32", 1, random_folder)


@pytest.fixture
def world(
    alone: BaseModel,
    random_folder: Path,
    tmp_path: Path,
    falls_back: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    monkeypatch.setattr("steelyard.scoring.remote.routed.PROBE_S", 0.05)
    with ExitStack() as closing:
        source = base_source(random_folder, engine=alone.scorer.engine)
        folders = {name: tmp_path / name for name in ADAPTERS}
        shas = {
            name: write_lora_artifact(folder, source, scale=0.5, seed=seed).sha256
            for seed, (name, folder) in enumerate(folders.items())
        }
        remote = {name: remote_model(alone, folders[name], shas[name]) for name in ADAPTERS}
        parameters = {"steelyard_sha256": alone.scorer.sha256, "precision": "float32"}
        remote["random"] = FakeModel(alone.scorer.pass_engine.run, parameters)
        if not falls_back:  # then nothing holds their answers against those of an engine here
            for model in remote.values():
                model.run = run_pass
        triton = closing.enter_context(serving(*remote.items()))

        def fetch(sha256: str) -> Path:
            return world.fetch(sha256)

        models = open_models(triton.url, random_folder, fetch, closing, falls_back=falls_back)
        world = World(triton, models, alone, folders, shas)
        yield world


def test_models_are_loaded_and_let_go_of_in_the_server(world):
    one, two, three = ADAPTERS
    world.hold(one)
    assert world.in_server == {"random", one}
    assert world.triton.models[one].n_passes > 1
    world.models.pin([one])
    world.hold(two)
    world.hold(three)
    wait_until(lambda: world.in_server == {"random", one, three})
    assert world.models.states() == {one: "loaded", three: "loaded"}
    world.models.close()
    assert world.in_server == {"random"}


def test_a_model_that_a_killed_service_left_is_used_and_let_go_of(world):
    one = ADAPTERS[0]
    world.triton.models[one].is_loaded = True
    world.hold(one)
    world.models.close()
    assert world.triton.calls[f"load {one}"] == 0
    assert world.in_server == {"random"}


@pytest.mark.parametrize("falls_back", [True], indirect=True)
def test_a_model_that_the_server_lost_runs_here_and_is_loaded_again(world):
    one = ADAPTERS[0]
    model = world.triton.models[one]
    world.hold(one)
    expected = world.alone(one)

    def check() -> None:
        for found, right in zip(world.answer(one), expected, strict=True):
            np.testing.assert_allclose(found, right, atol=1e-5)

    check()
    assert model.n_passes > 1
    model.load_fault, model.is_loaded = "failed to poll from model repository", False
    n_passes = model.n_passes
    check()
    assert model.n_passes == n_passes
    model.load_fault = None
    wait_until(lambda: one in world.in_server)


def test_a_cold_model_is_waited_for_and_then_reported_as_warming(world):
    one = ADAPTERS[0]
    model = world.triton.models[one]
    model.load_gate.clear()
    with pytest.raises(ModelWarmingError, match="router@1 is still loading"):
        asyncio.run(world.models.ensure(Tuned(one), world.shas[one], wait_s=0.05))
    model.load_gate.set()
    asyncio.run(world.models.ensure(Tuned(one), world.shas[one], wait_s=60))
    assert world.models.states() == {one: "loaded"}


def test_a_server_that_is_away_is_asked_again_by_the_next_call(world):
    one = ADAPTERS[0]
    world.triton.stop()
    with pytest.raises(EngineUnavailableError, match="cannot be reached"):
        asyncio.run(world.models.ensure(Tuned(one), world.shas[one], wait_s=60))
    assert world.models.states() == {}
    world.triton.start()
    asyncio.run(world.models.ensure(Tuned(one), world.shas[one], wait_s=60))
    assert world.in_server >= {one}
