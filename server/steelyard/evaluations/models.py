"""The models that evaluations score: base models, families as they serve now, and numbers.

An evaluation of a family is one of the model that it serves when the evaluation is queued; from then on
it is known by its adapter and the rest of its identity, whatever its switches do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Connection

from steelyard.caller import Caller
from steelyard.errors import ModelUnavailableError
from steelyard.serving.registry import HostedModel, ModelRegistry
from steelyard.wire.methods import Method


@dataclass(frozen=True, slots=True)
class Training:
    """The rows that a tuned model was trained on."""

    dataset_id: str
    dataset_version: int
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """A model as an evaluation keeps it."""

    id: str
    label: str
    evaluation_key: str
    family: str | None = None
    version: int | None = None
    job_id: str | None = None
    named: str | None = None
    #: Most tokens that it writes on a decision before it answers.
    thought_tokens: int = 0
    training: Training | None = None


class ModelResolver(Protocol):
    """The tuned models of accounts; the families fill it."""

    async def find(self, caller: Caller, name: str) -> EvaluatedModel:
        """Return the model that a call to a name would be answered by, or refuse the name."""

    async def key_of(self, account_id: str, model_id: str) -> str | None:
        """Return the key of a model's present weights; ``None`` when it is not here."""

    async def prices_of(self, account_id: str) -> Mapping[str, int]:
        """Return nano-USD per input token of each of an account's models that are here."""

    def require_ready(self, connection: Connection, account_id: str, model_id: str) -> None:
        """Refuse a tuned model that is gone for good; a base model is none."""

    def open(self, account_id: str, model_id: str) -> AbstractContextManager[HostedModel]:
        """Return a model, loaded for as long as the block runs; blocks until it is."""

    def note_use(self, account_id: str, name: str) -> None:
        """Note that an evaluation named a family or a number; returns at once."""

    def use_in(self, connection: Connection, account_id: str, name: str) -> Callable[[], None]:
        """Note the use in the caller's transaction; call the returned function after its commit."""


class EvaluatedModels:
    """Finds the models of evaluations."""

    def __init__(self, registry: ModelRegistry) -> None:
        self._registry = registry
        self._tuned: ModelResolver | None = None

    def register_tuned(self, tuned: ModelResolver) -> None:
        """Register the finder of tuned models, which stand above evaluations."""
        self._tuned = tuned

    async def find(self, caller: Caller, name: str) -> EvaluatedModel:
        """Return the model that a call to a name would be answered by."""
        hosted = self._registry.find(name)
        if hosted is None and self._tuned is not None:
            return await self._tuned.find(caller, name)
        hosted = hosted or self._registry.get(name)
        return EvaluatedModel(
            id=hosted.name,
            label=hosted.name,
            evaluation_key=hosted.evaluation_key,
            thought_tokens=hosted.decide.thought_tokens,
        )

    async def key_of(self, account_id: str, model_id: str) -> str | None:
        """Return the key of a model's present weights; ``None`` when it is not here."""
        hosted = self._registry.find(model_id)
        if hosted is not None:
            return hosted.evaluation_key
        return None if self._tuned is None else await self._tuned.key_of(account_id, model_id)

    async def prices_of(self, account_id: str, model_ids: Iterable[str]) -> dict[str, int]:
        """Return nano-USD per input token of those of the models that are still here."""
        tuned = {} if self._tuned is None else await self._tuned.prices_of(account_id)
        models = {model_id: self._registry.find(model_id) for model_id in model_ids}
        return {
            model_id: tuned[model_id] if hosted is None else hosted.price_nano
            for model_id, hosted in models.items()
            if hosted is not None or model_id in tuned
        }

    def require_ready(
        self, connection: Connection, account_id: str, model_ids: Iterable[str]
    ) -> None:
        """Refuse tuned models that are gone for good; base models are none of an account's."""
        for model_id in model_ids:
            if self._tuned is not None:
                self._tuned.require_ready(connection, account_id, model_id)

    @contextmanager
    def open(self, account_id: str, model_id: str) -> Iterator[HostedModel]:
        """Yield a model, loaded for as long as the block runs; blocks until it is."""
        hosted = self._registry.find(model_id)
        if hosted is not None:
            yield hosted
            return
        if self._tuned is None:
            raise no_model(model_id)
        with self._tuned.open(account_id, model_id) as tuned:
            yield tuned

    def note_use(self, account_id: str, name: str) -> None:
        """Note that an evaluation named a family or a number; returns at once."""
        if self._tuned is not None:
            self._tuned.note_use(account_id, name)

    def use_in(
        self, connection: Connection, account_id: str, name: str
    ) -> Callable[[], None] | None:
        """Note the use in the caller's transaction; call the returned function after its commit."""
        return None if self._tuned is None else self._tuned.use_in(connection, account_id, name)


def no_model(model_id: str) -> ModelUnavailableError:
    """Return the refusal to score with a model that is not here."""
    return ModelUnavailableError(
        f"There is no model {model_id} here; start the worker with the settings of the "
        "server, or evaluate another model."
    )
