"""Fine-tunes with an adapter in the real Triton server: loaded, let go of and killed under traffic."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from support.waiting import wait_until

pytest.importorskip("tritonclient.grpc")

from steelyard.errors import EngineUnavailableError, ModelWarmingError
from steelyard.families.tuned import TunedModels
from steelyard.scoring.assets import load_base_model
from steelyard.triton.host import TritonHost
from steelyard.triton.repository import ExportOptions, base_source, write_model
from support.triton.triton_hosting import triton_environment, write_lora_artifact
from support.triton.triton_tuned import ADAPTERS, Tuned, answer, answer_alone, open_models

pytestmark = [pytest.mark.triton, pytest.mark.timeout(300)]

#: How often each fine-tune is asked for; two of three are loaded at a time.
N_ASKED = 6


@dataclass(frozen=True)
class Hosted:
    """Three fine-tunes over the random base, exported to a server."""

    triton: TritonHost
    models: TunedModels
    shas: dict[str, str]
    expected: dict[str, list[np.ndarray]]

    @property
    def in_server(self) -> set[str]:
        return {name for name, state in self.triton.models().items() if state == "READY"}

    def ask(self, adapter: str) -> None:
        """Load a fine-tune where it is not; its answer must be this process's own."""
        with self.models.holding(Tuned(adapter), self.shas[adapter]) as hosted:
            for found, right in zip(answer(hosted), self.expected[adapter], strict=True):
                np.testing.assert_allclose(found, right, atol=1e-4)


@pytest.fixture
def hosted(random_folder: Path, tmp_path: Path, monkeypatch) -> Iterator[Hosted]:
    monkeypatch.setattr("steelyard.scoring.remote.routed.PROBE_S", 0.1)
    alone = load_base_model("onnxruntime-float32", 1, random_folder)
    source = base_source(random_folder)
    repository = tmp_path / "repository"
    write_model(repository, source, ExportOptions(threads=1))
    folders = {name: tmp_path / name for name in ADAPTERS}
    shas = {}
    for seed, (name, folder) in enumerate(folders.items()):
        tuned = write_lora_artifact(folder, source, scale=0.5, seed=seed)
        shas[name] = tuned.sha256
        write_model(repository, replace(tuned, name=name), ExportOptions(threads=1))
    expected = {name: answer_alone(folder, alone) for name, folder in folders.items()}
    alone.scorer.close()

    def fetch(sha256: str) -> Path:
        return next(folders[name] for name, sha in shas.items() if sha == sha256)

    with TritonHost(repository, triton_environment(), load=["random"]) as triton, ExitStack() as on:
        models = open_models(triton.url, random_folder, fetch, on, falls_back=False)
        yield Hosted(triton, models, shas, expected)
        on.close()
        assert hosted_are_gone(triton)


def hosted_are_gone(triton: TritonHost) -> bool:
    """Whether no fine-tune is left in a server."""
    return not {name for name, state in triton.models().items() if state == "READY"} & {*ADAPTERS}


@pytest.mark.slow
def test_the_answers_of_the_fine_tunes_differ(hosted):
    one, two, three = hosted.expected.values()
    for other in (two, three):
        assert max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True)) > 1e-2


@pytest.mark.slow
def test_they_come_and_go_in_the_server_while_all_are_asked(hosted):
    def ask(adapter: str) -> None:
        for _ in range(N_ASKED):
            hosted.ask(adapter)

    with ThreadPoolExecutor(len(ADAPTERS)) as threads:
        for asked in [threads.submit(ask, adapter) for adapter in ADAPTERS]:
            asked.result(120)
    assert len(hosted.models.states()) <= 2
    wait_until(lambda: hosted.in_server == {"random", *hosted.models.states()})


@pytest.mark.slow
def test_a_server_that_is_killed_answers_again_with_the_same(hosted):
    one, two, _ = ADAPTERS
    hosted.ask(one)
    hosted.ask(two)
    stop = threading.Event()
    refused: list[str] = []

    def is_answered(adapter: str) -> bool:
        """Whether it is answered, and then right; nothing but the contract's refusals may come."""
        try:
            hosted.ask(adapter)
        except (EngineUnavailableError, ModelWarmingError) as error:
            refused.append(error.code)
            return False
        return True

    def ask() -> None:
        while not stop.is_set():
            is_answered(one)

    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask)
        try:
            hosted.triton.kill()
            wait_until(lambda: refused)
            hosted.triton.start()
            wait_until(lambda: is_answered(two))
            wait_until(lambda: {one, two} <= hosted.in_server)
        finally:
            stop.set()
        asking.result(60)
    wait_until(lambda: is_answered(one))
    assert set(refused) <= {"engine_unavailable", "model_warming"}
