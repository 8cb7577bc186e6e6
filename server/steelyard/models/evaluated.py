"""Tuned models as evaluations score them: resolved by name when named, and by adapter."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection

from steelyard.caller import Caller
from steelyard.evaluations.models import EvaluatedModel, Training, no_model
from steelyard.families.lineage.lineage import FamilyModel
from steelyard.families.lineage.references import require_ready
from steelyard.families.lineage_store import LineageStore
from steelyard.families.store import StoredLineage, find_tuned_model
from steelyard.families.tuned import TunedModels, price_of, tuned_evaluation_key
from steelyard.models.calls import TunedCalls
from steelyard.serving.refusals import unknown_model
from steelyard.serving.registry import HostedModel, ModelRegistry


class EvaluatedFamilies:
    """The tuned models of accounts, for evaluations."""

    def __init__(
        self,
        bases: ModelRegistry,
        lineages: LineageStore,
        models: TunedModels,
        *,
        calls: TunedCalls | None = None,
    ) -> None:
        self._bases = bases
        self._lineages = lineages
        self._models = models
        self._calls = calls

    async def find(self, caller: Caller, name: str) -> EvaluatedModel:
        """Return the model that a call to a name would be answered by."""
        if self._calls is None:
            raise unknown_model(name, self._bases.names)
        call = await self._calls.find(caller, name)
        model = call.resolved.model
        job = (await self._lineages.read(caller.account_id)).lineage.jobs[model.job_id]
        return EvaluatedModel(
            id=model.adapter,
            label=model.ref,
            evaluation_key=call.evaluation_key,
            family=model.family,
            version=model.version,
            job_id=model.job_id,
            named=name,
            training=Training(job.dataset_id, job.dataset_version, job.method),
        )

    async def key_of(self, account_id: str, model_id: str) -> str | None:
        """Return the key of a model's current answers; ``None`` when the model is gone."""
        ready = _ready(await self._lineages.read(account_id), model_id)
        if ready is None:
            return None
        model, artifact_sha256 = ready
        base = self._bases.find(model.base)
        return None if base is None else tuned_evaluation_key(artifact_sha256, base.evaluation_key)

    async def prices_of(self, account_id: str) -> Mapping[str, int]:
        """Return nano-USD per input token of each of an account's models that are here."""
        stored = await self._lineages.read(account_id)
        return {
            adapter: price_of(model, base, self._bases.find)
            for adapter, model in stored.lineage.models.items()
            if _ready(stored, adapter) and (base := self._bases.find(model.base)) is not None
        }

    @staticmethod
    def require_ready(connection: Connection, account_id: str, model_id: str) -> None:
        """Refuse a tuned model that is gone for good; a base model is none."""
        model = find_tuned_model(connection, account_id, model_id)
        if model is not None:
            require_ready(model)

    @contextmanager
    def open(self, account_id: str, model_id: str) -> Iterator[HostedModel]:
        """Yield a model, loaded for as long as the block runs; blocks until it is."""
        ready = _ready(self._lineages.read_now(account_id), model_id)
        if ready is None:
            raise no_model(model_id)
        with self._models.holding(*ready) as tuned:
            yield tuned

    def note_use(self, account_id: str, name: str) -> None:
        """Note that an evaluation named a family or a number; returns at once."""
        self._lineages.note_use(account_id, name)

    def use_in(self, connection: Connection, account_id: str, name: str) -> Callable[[], None]:
        """Note the use in the caller's transaction; call the returned function after its commit."""
        applied = self._lineages.use_in(connection, account_id, name)
        return functools.partial(self._lineages.follow, applied)


def _ready(stored: StoredLineage, adapter: str) -> tuple[FamilyModel, str] | None:
    """Return a model that is neither deleted nor discarded, and its artifact."""
    model, artifact_sha256 = stored.lineage.models.get(adapter), stored.artifacts.get(adapter)
    if model is None or model.status != "ready" or artifact_sha256 is None:
        return None
    return model, artifact_sha256
