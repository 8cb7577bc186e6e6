"""A loaded model, its queue and its service, as ``steelyard.decide`` uses them.

Nothing is kept in a database here, and no web framework is loaded; a server is opened by
``steelyard.app.bootstrap``.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from steelyard.scoring.batching import Batcher
from steelyard.serving.base import (
    LoadedModel,
    ModelLoader,
    load_further_model,
    load_named_model,
    parse_base_models,
    reads_cleaned,
)
from steelyard.serving.decide import AnswerService, DecideService
from steelyard.settings import Settings, read_settings


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model that is loaded and answers."""

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
    """Load a model and yield its deployment; close both at the end."""
    deployment, batcher = _build(settings or read_settings(), load_model or load_named_model)
    try:
        yield deployment
    finally:
        batcher.close()
        deployment.model.scorer.close()


class _Default:
    """The process's deployment. A forked child makes its own: threads do not survive a fork."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str | None, Deployment] = {}

    def get(self, model: str | None) -> Deployment:
        with self._lock:
            settings = read_settings()
            sources = {} if model is None else parse_base_models(settings.base_models)
            # Of another name the default says that nothing has it.
            name = model if model in sources else None
            if name not in self._by_name:
                load: ModelLoader = load_named_model
                if name is not None:
                    load = functools.partial(load_further_model, name, sources[name])
                self._by_name[name], _ = _build(settings, load, name)
            return self._by_name[name]


_default = _Default()
os.register_at_fork(after_in_child=_default.forget)


def default_deployment(model: str | None = None) -> Deployment:
    """Return this process's deployment of a base model, built from the environment at the first call."""
    return _default.get(model)


def _build(
    settings: Settings, load_model: ModelLoader, name: str | None = None
) -> tuple[Deployment, Batcher]:
    model = load_model(settings.engine, settings.threads or None)
    batcher = Batcher(model.scorer, max_queue=settings.max_queue)
    decide = DecideService(
        model_name=name or model.scorer.name,
        temperatures=model.temperatures,
        tokenizer=model.tokenizer,
        warns=reads_cleaned(model.scorer),
    )
    answers = AnswerService(decide, batcher, deadline_s=settings.deadline_s)
    return Deployment(answers, model, settings), batcher
