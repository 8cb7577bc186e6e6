"""The composition root: builds the service from settings. The only place that names engines.

A deployment is a loaded model, the queue before it and the service that answers. The server has
one, and so has a process that calls ``steelyard.decide``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from steelyard.api.services import ApiServices
from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.tokens import TokenCounter
from steelyard.scoring.batching import Batcher
from steelyard.scoring.protocol import Scorer
from steelyard.services.answers import AnswerService
from steelyard.services.decide import DecideService
from steelyard.settings import Settings, read_settings

#: The engine that is a test double.
HASHING = "hashing"


class LoadedModel(Protocol):
    """What a loader gives: a scorer and what belongs to it."""

    @property
    def scorer(self) -> Scorer:
        """Gives logits."""
        ...

    @property
    def tokenizer(self) -> TokenCounter:
        """Counts input tokens."""
        ...

    @property
    def temperatures(self) -> TemperatureTable:
        """Turns logits into calibrated probabilities."""
        ...

    @property
    def card(self) -> Path | None:
        """The model card, when there is one."""
        ...

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Name, version, and the files with their hashes."""
        ...


@dataclass(frozen=True, slots=True)
class ModelDouble:
    """The hashing scorer in the shape of a loaded model; its answers mean nothing."""

    scorer: Scorer
    tokenizer: TokenCounter
    temperatures: TemperatureTable = field(default_factory=TemperatureTable)
    card: Path | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)


#: Loads a model: the engine's name, and its threads or ``None``.
ModelLoader = Callable[[str, int | None], LoadedModel]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model that is loaded and answers.

    Parameters
    ----------
    answers : steelyard.services.answers.AnswerService
        Answers requests.
    model : LoadedModel
        What answers them.
    settings : steelyard.settings.Settings
        What it was built from.
    """

    answers: AnswerService
    model: LoadedModel
    settings: Settings

    @property
    def model_name(self) -> str:
        """Name of the model, as in answers."""
        return self.model.scorer.name

    @property
    def engine(self) -> str:
        """Engine and precision."""
        return self.model.scorer.engine


@contextmanager
def open_deployment(
    settings: Settings | None = None, *, load_model: ModelLoader | None = None
) -> Iterator[Deployment]:
    """Load a model and give what answers with it; closes both at the end.

    Parameters
    ----------
    settings : Settings, optional
        The environment's when left out.
    load_model : callable, optional
        Called with the engine and the threads instead of loading what they name.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When the model cannot be loaded.
    """
    deployment, batcher = _build(settings or read_settings(), load_model or load_named_model)
    try:
        yield deployment
    finally:
        batcher.close()
        deployment.model.scorer.close()


def load_named_model(engine: str, threads: int | None) -> LoadedModel:
    """Load the shipped model on an engine, or the test double.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When the model's files or the engine are missing.
    """
    if engine == HASHING:
        from steelyard.scoring.hashing import HashingScorer, WordCounter

        return ModelDouble(HashingScorer(), WordCounter())
    from steelyard.scoring.assets import load_base_model

    return load_base_model(engine=engine, threads=threads)


def api_services(deployment: Deployment) -> ApiServices:
    """Give what an HTTP application needs to answer with a deployment."""
    return ApiServices(
        answers=deployment.answers,
        model=deployment.model_name,
        engine=deployment.engine,
        body_bytes=deployment.settings.body_bytes,
        deadline_s=deployment.settings.deadline_s,
    )


class _Default:
    """The process's deployment. A forked child makes its own: threads do not survive a fork."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._deployment: Deployment | None = None

    def get(self) -> Deployment:
        with self._lock:
            if self._deployment is None:
                self._deployment, _ = _build(read_settings(), load_named_model)
            return self._deployment


_default = _Default()
os.register_at_fork(after_in_child=_default.forget)


def default_deployment() -> Deployment:
    """Give this process's deployment, built from the environment at the first call."""
    return _default.get()


def _build(settings: Settings, load_model: ModelLoader) -> tuple[Deployment, Batcher]:
    model = load_model(settings.engine, settings.threads or None)
    batcher = Batcher(model.scorer, max_queue=settings.max_queue)
    decide = DecideService(
        model_name=model.scorer.name,
        temperatures=model.temperatures,
        tokenizer=model.tokenizer,
    )
    answers = AnswerService(decide, batcher, deadline_s=settings.deadline_s)
    return Deployment(answers, model, settings), batcher
