"""The models that evaluations score: base models, families as they serve now, and numbers.

An evaluation of a family is one of the model that it serves when the evaluation is queued; from
then on it is known by its adapter and by what decides its answers, whatever its switches do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Connection

from steelyard.errors import ModelUnavailableError
from steelyard.families import line
from steelyard.services.caller import Caller
from steelyard.services.lines import Applied
from steelyard.services.models import HostedModel, ModelRegistry
from steelyard.services.tuned_calls import TunedCalls
from steelyard.services.tuned_models import TunedModels, tuned_evaluation_key
from steelyard.storage.state.lines import StoredLines


class LineReader(Protocol):
    """An account's lines; ``steelyard.services.lines.LineKeeper`` is one."""

    def read_now(self, account_id: str) -> StoredLines:
        """Give them, blocking."""
        ...

    async def read(self, account_id: str) -> StoredLines:
        """Give them."""
        ...

    def note_use(self, account_id: str, name: str) -> None:
        """Note that a name was used now; returns at once."""
        ...

    def use_in(self, connection: Connection, account_id: str, name: str) -> Applied:
        """Note it in a transaction of the caller's."""
        ...

    def follow(self, applied: Applied) -> None:
        """Tell of it after the commit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """A model as an evaluation keeps it.

    Parameters
    ----------
    id : str
        A base model's name, or a tuned model's adapter.
    label : str
        What people read: the name, or the number.
    evaluation_key : str
        SHA-256 of what decides its answers.
    family : str or None
        Whose line a tuned model is of.
    version : int or None
        Its number there.
    job_id : str or None
        The fine-tune that made it.
    named : str or None
        How the request named a tuned model.
    """

    id: str
    label: str
    evaluation_key: str
    family: str | None = None
    version: int | None = None
    job_id: str | None = None
    named: str | None = None


class EvaluatedModels:
    """Finds the models of evaluations.

    Parameters
    ----------
    registry : ModelRegistry
        The base models.
    calls : TunedCalls, optional
        Who answers calls to families and numbers, where evaluations are asked for.
    lines : LineReader, optional
        The accounts' lines; without them there are base models alone.
    tuned : TunedModels, optional
        Loads tuned models, where evaluations run.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        *,
        calls: TunedCalls | None = None,
        lines: LineReader | None = None,
        tuned: TunedModels | None = None,
    ) -> None:
        self._registry = registry
        self._calls = calls
        self._lines = lines
        self._tuned = tuned

    async def find(self, caller: Caller, name: str) -> EvaluatedModel:
        """Give the model that a call to a name would be answered by.

        Raises
        ------
        steelyard.errors.SteelyardError
            As ``TunedCalls.find``.
        """
        hosted = self._registry.find(name)
        if hosted is None and self._calls is not None:
            call = await self._calls.find(caller, name)
            model = call.resolved.model
            return EvaluatedModel(
                id=model.adapter,
                label=model.ref,
                evaluation_key=call.evaluation_key,
                family=model.family,
                version=model.version,
                job_id=model.job_id,
                named=name,
            )
        hosted = hosted or self._registry.get(name)
        return EvaluatedModel(
            id=hosted.name, label=hosted.name, evaluation_key=hosted.evaluation_key
        )

    async def key_of(self, account_id: str, model_id: str) -> str | None:
        """Give what decides the answers of a model now; ``None`` when it is no longer here."""
        hosted = self._registry.find(model_id)
        if hosted is not None or self._lines is None:
            return None if hosted is None else hosted.evaluation_key
        found = _ready(await self._lines.read(account_id), model_id)
        if found is None:
            return None
        model, artifact_sha256 = found
        base = self._registry.find(model.base)
        return None if base is None else tuned_evaluation_key(artifact_sha256, base.evaluation_key)

    @contextmanager
    def open(self, account_id: str, model_id: str) -> Iterator[HostedModel]:
        """Give a model, loaded for as long as the block runs; blocks until it is.

        Raises
        ------
        steelyard.errors.ModelUnavailableError
            When it is no longer here.
        steelyard.errors.EngineUnavailableError
            When it cannot be loaded.
        """
        hosted = self._registry.find(model_id)
        if hosted is not None:
            yield hosted
            return
        found = None
        if self._lines is not None:
            found = _ready(self._lines.read_now(account_id), model_id)
        if found is None or self._tuned is None:
            raise ModelUnavailableError(
                f"There is no model {model_id} here; start the worker with the settings of the "
                "server, or evaluate another model."
            )
        with self._tuned.holding(*found) as tuned:
            yield tuned

    def note_use(self, account_id: str, name: str) -> None:
        """Note that an evaluation named a family or a number; returns at once."""
        if self._lines is not None:
            self._lines.note_use(account_id, name)

    def use_in(self, connection: Connection, account_id: str, name: str) -> Applied | None:
        """Note the same in a transaction of the caller's; what it gives is for ``follow``."""
        return None if self._lines is None else self._lines.use_in(connection, account_id, name)

    def follow(self, applied: Applied) -> None:
        """Tell of a use once its transaction is durable."""
        if self._lines is not None:
            self._lines.follow(applied)


def _ready(stored: StoredLines, adapter: str) -> tuple[line.Model, str] | None:
    """Give a model that is neither deleted nor discarded, and its artifact."""
    model, artifact_sha256 = stored.lines.models.get(adapter), stored.artifacts.get(adapter)
    if model is None or model.status != "ready" or artifact_sha256 is None:
        return None
    return model, artifact_sha256
