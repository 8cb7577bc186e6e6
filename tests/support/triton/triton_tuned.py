"""Fine-tunes with an adapter for tests: the models that load them by a server."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from msgspec import UNSET

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedRequest
from steelyard.families.tuned import TunedModels
from steelyard.scoring.assets import BaseModel, load_base_model
from steelyard.scoring.batching import Batcher
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.scoring.remote.triton_address import parse_scorer
from steelyard.scoring.tuned import load_tuned
from steelyard.serving.decide import DecideService
from steelyard.serving.registry import Base, HostedModel, ModelFacts
from support.models.random_model import sample_requests

REQUEST = RenderedRequest("Short.", sample_requests()[0].decisions)
ADAPTERS = ("ft-ftj_one", "ft-ftj_two", "ft-ftj_three")


@dataclass(frozen=True)
class Tuned:
    """A model that may be loaded."""

    adapter: str
    base: str = "random"
    gate: Any = field(default_factory=lambda: SimpleNamespace(reader=UNSET))

    @property
    def ref(self) -> str:
        return f"router@{1 + ADAPTERS.index(self.adapter)}"


def open_models(
    url: str,
    base_folder: Path,
    fetch: Callable[[str], Path],
    closing: ExitStack,
    *,
    falls_back: bool,
) -> TunedModels:
    """Return models of which two are loaded at a time, their passes in a server."""
    host = RemoteHost(parse_scorer(url), falls_back=falls_back, timeout_s=30.0)
    closing.callback(host.close)
    base = load_base_model("onnxruntime-float32", 1, base_folder, host=host, hosted_name="random")
    closing.callback(base.scorer.close)
    queue = Batcher(base.scorer)
    closing.callback(queue.close)
    facts = ModelFacts(
        decide=DecideService(
            model_name="random", temperatures=TemperatureTable(), tokenizer=base.tokenizer
        ),
        engine=base.scorer.engine,
        description="A base.",
        release_date=dt.date(2026, 5, 1),
        evaluation_key="0" * 64,
    )
    hosted = HostedModel(facts, queue, price_nano=0)

    class Artifacts:
        def fetch(self, sha256: str) -> Path:
            return fetch(sha256)

    def load(folder, base, *, threads, adapter):
        return load_tuned(folder, base, threads=1, host=host, hosted_name=adapter)

    models = TunedModels(
        Artifacts(), {"random": Base(hosted, base.scorer)}, load, max_loaded=2, threads=1
    )
    closing.callback(models.close)
    return models


def answer(hosted: HostedModel) -> list[np.ndarray]:
    """The logits of a model that is loaded."""
    return [one.logits for one in hosted.queue.submit(REQUEST).result(60)]


def answer_alone(folder: Path, base: BaseModel) -> list[np.ndarray]:
    """The same without a server."""
    scorer = load_tuned(folder, base.scorer, threads=1)
    found = [one.logits for one in scorer.score([REQUEST])[0]]
    scorer.close()
    return found
