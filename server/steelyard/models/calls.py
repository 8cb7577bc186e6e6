"""Calls to families and to models by number: who answers them, and under which name.

A call names a family or a number of its own account. The name is resolved anew for every call; the
model behind it is loaded by the first call that needs it, which waits for a while and is then refused,
as the model is warming. Not here: the meaning of names (``steelyard.families.service``), and fallbacks
(``steelyard.serving.fallback``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

import msgspec
from msgspec import UNSET

from steelyard.caller import Caller
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import (
    EngineUnavailableError,
    InvalidReferenceError,
    ModelUnavailableError,
)
from steelyard.families.lineage.lineage import AnswerBound, FamilyModel
from steelyard.families.tuned import (
    TunedModels,
    lacks_reader,
    price_of,
    tuned_evaluation_key,
    without_base,
    without_reader,
)
from steelyard.serving.decide import Prepared
from steelyard.serving.refusals import unknown_model
from steelyard.serving.registry import HostedModel, ModelRegistry, Scores


class Resolved(Protocol):
    """The model that a name means now; ``steelyard.families.service.ResolvedModel`` is one."""

    @property
    def version(self) -> str | None:
        """Its number where the name is a family's."""
        ...

    @property
    def model(self) -> FamilyModel:
        """The model."""
        ...

    @property
    def artifact_sha256(self) -> str:
        """Names its files."""
        ...

    @property
    def bound(self) -> AnswerBound | None:
        """The certificate of its answers, if any."""
        ...

    @property
    def false_alarms(self) -> float | None:
        """How often it may abstain on texts like the held-out ones, where it does on others."""
        ...


class Names(Protocol):
    """Resolves names of models; ``steelyard.models.service.FamilyModels`` does."""

    async def resolve(self, caller: Caller, name: str) -> Resolved:
        """Return the model that answers calls to a name of the caller's, or refuse the call."""
        ...

    async def base_of(self, caller: Caller, name: str) -> str:
        """Return the base model under a family or a number, on or off."""
        ...

    def note_use(self, account_id: str, name: str) -> None:
        """Note that a name was called now; returns at once."""
        ...


class TunedCall:
    """A family or a number as one request calls it."""

    def __init__(
        self,
        name: str,
        resolved: Resolved,
        base: HostedModel,
        models: TunedModels,
        warm_wait_s: float,
        price_nano: int,
    ) -> None:
        self.name = name
        self.resolved = resolved
        #: Nano-USD per input token.
        self.price_nano = price_nano
        self._base = base
        self._models = models
        self.warm_wait_s = warm_wait_s

    @property
    def max_input_tokens(self) -> int:
        """Most input tokens of a request."""
        return self._base.max_input_tokens

    @property
    def evaluation_key(self) -> str:
        """SHA-256 of the weights that decide its answers."""
        return tuned_evaluation_key(self.resolved.artifact_sha256, self._base.evaluation_key)

    @property
    def failed_recently(self) -> bool:
        """Whether it is loaded, failed a short while ago and has not answered since."""
        hosted = self._loaded
        return hosted is not None and hosted.failed_recently

    @property
    def hangs(self) -> bool:
        """Whether its engine is in a call that outlasted the wait of a request."""
        hosted = self._loaded
        return hosted is not None and hosted.hangs

    def prepare(self, request: ValidRequest, started: float) -> Prepared:
        """Render a request for it."""
        prepared = self._base.decide.prepare_request(request, started=started)
        return dataclasses.replace(prepared, model=self.name)

    def check_room(self, prepared: Prepared) -> None:
        """Refuse a request that could not be begun now; one that is not loaded refuses none."""
        hosted = self._loaded
        if hosted is not None:
            hosted.check_room(prepared)

    async def answer(
        self, prepared: Prepared, wait_s: float, *, on_queued: Callable[[Scores], None]
    ) -> DecideResponse:
        """Answer a request under the name called, loading the model first where that is needed."""
        ends_at = perf_counter() + wait_s
        false_alarms = self.resolved.false_alarms
        if false_alarms is not None:
            rendered = dataclasses.replace(prepared.rendered, false_alarms=false_alarms)
            prepared = dataclasses.replace(prepared, rendered=rendered)
        model, sha256 = self.resolved.model, self.resolved.artifact_sha256
        try:
            using = self._models.using(model, sha256, min(self.warm_wait_s, wait_s))
            async with using as hosted:
                left_s = max(ends_at - perf_counter(), 0.0)
                answer = await hosted.answer(prepared, left_s, on_queued=on_queued)
        except EngineUnavailableError as error:
            if self._models.states().get(model.adapter) == "failed":
                raise unloadable(model) from error
            raise
        bound = self.resolved.bound
        if bound is not None:
            from steelyard.families.certifying import certify_answer  # noqa: PLC0415 - few have one

            answer = certify_answer(answer, prepared.request, bound, model.adapter)
        if false_alarms is not None:
            from steelyard.families.certifying import abstain_on_novel  # noqa: PLC0415 - few do

            answer = abstain_on_novel(answer)
        return msgspec.structs.replace(
            answer, model=self.name, version=self.resolved.version or UNSET
        )

    @property
    def _loaded(self) -> HostedModel | None:
        return self._models.loaded(self.resolved.model.adapter)


class TunedCalls:
    """Finds who answers a call to a family's name or a number."""

    def __init__(
        self, names: Names, models: TunedModels, bases: ModelRegistry, *, warm_wait_s: float
    ) -> None:
        self._names = names
        self._models = models
        self._bases = bases
        self.warm_wait_s = warm_wait_s

    async def find(self, caller: Caller, name: str) -> TunedCall:
        """Return who answers calls to a name; nothing is loaded."""
        try:
            resolved = await self._names.resolve(caller, name)
        except InvalidReferenceError:
            # A call may name anything: a text without the form of a name is not there.
            raise unknown_model(name, self._bases.names) from None
        model = resolved.model
        base = self._bases.find(model.base)
        if base is None:
            raise without_base(model)
        if lacks_reader(model, self._bases.find):
            raise without_reader(model)
        if self._models.states().get(model.adapter) == "failed":
            raise unloadable(model)
        price_nano = price_of(model, base, self._bases.find)
        return TunedCall(name, resolved, base, self._models, self.warm_wait_s, price_nano)

    async def base_of(self, caller: Caller, name: str) -> str:
        """Return the base model under a family or a number, on or off."""
        return await self._names.base_of(caller, name)

    def note_use(self, account_id: str, name: str) -> None:
        """Note that a production call named a family or a number; returns at once."""
        self._names.note_use(account_id, name)


def unloadable(model: FamilyModel) -> ModelUnavailableError:
    """Return the refusal of a call to a model that cannot be loaded any more."""
    return ModelUnavailableError(
        f"The model {model.ref} can no longer be loaded; call another model of its family."
    )
