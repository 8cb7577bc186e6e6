"""Which models may answer a request, and trying them in turn within one deadline.

========  ==========================================================================================
fallback  who may stand in when the model asked for is unable to answer at the moment
========  ==========================================================================================
auto      every other base model here that is no dearer, in the server's order; connected ones, which
          would show a request to another server, are never among them
none      no other
a list    its models in its order, dearer ones too, at the price of the model asked for; a name that
          answers no calls is passed over
========  ==========================================================================================

Passing failures move a request on: a model that is loading, an engine that fails, is overloaded or
takes too long. A family or a number that is off moves it on to a list alone, and is refused without
one; a model that is gone is refused in any case.

A request with a list, or the version of a named decision, may have it decide further (``escalate``):
decisions from which the model abstains, and texts unlike its training rows, go to the next of the list,
at the price of both.

A model that failed in the last 30 seconds is passed over without an attempt as long as another of
them did not. Every attempt but the last gets at most half of the time that is left, so that a model
that hangs leaves time for the next.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from steelyard import errors, tracing
from steelyard.caller import Caller
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import ABSTAIN, DecideResponse, FallbackReport
from steelyard.serving.decide import Prepared
from steelyard.serving.registry import HostedModel, ModelRegistry, Scores
from steelyard.serving.routed.hosting import HostedRoute
from steelyard.tracing.attributes import Attributes

#: The reason given for a model that was passed over without an attempt.
RECENTLY_UNAVAILABLE = "recently_unavailable"
#: The reason given where the model asked for was not sure, and others decide then.
UNSURE = "unsure"
#: Passing failures of a model, after which the next one is tried.
PASSING = (errors.EngineUnavailableError, errors.DeadlineExceededError, errors.ModelWarmingError)
#: That the model asked for is off: who is listed to stand in is tried.
OFF = (errors.FamilyOffError, errors.FamilyEmptyError, errors.ModelOffError)
#: The convention's names of the shapes that are not this server's own, by route.
_SYSTEMS = {"POST /v1/systemone": "typesafe", "POST /v1/decisions": "openai"}
#: Shorter waits than this many seconds are no attempt.
_SHORTEST_S = 0.001


class Answerer(Protocol):
    """A model, such as a ``HostedModel``, that may answer under one name: a base model, or a tuned one."""

    @property
    def name(self) -> str:
        """The name that the answer carries."""

    @property
    def price_nano(self) -> int:
        """Nano-USD per input token."""

    @property
    def max_input_tokens(self) -> int:
        """Most input tokens of a request."""

    @property
    def failed_recently(self) -> bool:
        """Whether it failed a short while ago and has not answered since."""

    @property
    def hangs(self) -> bool:
        """Whether its engine is in a call that outlasted the wait of a request."""

    def check_room(self, prepared: Prepared) -> None:
        """Refuse a request that could not be begun now."""

    async def answer(
        self, prepared: Prepared, wait_s: float, *, on_queued: Callable[[Scores], None]
    ) -> DecideResponse:
        """Score a request and finish its answer."""


class TunedAnswerer(Answerer, Protocol):
    """A family or a number as one request calls it."""

    def prepare(self, request: ValidRequest, started: float) -> Prepared:
        """Render a request for it."""


class OffCall:
    """A family or a number that a request asks for and that is off, so that others may stand in.

    It has the rules and the price of the base model under it, and answers with its refusal.
    """

    failed_recently = hangs = False

    def __init__(self, name: str, base: HostedModel, refusal: errors.SteelyardError) -> None:
        self.name = name
        self.refusal = refusal
        self._base = base

    @property
    def price_nano(self) -> int:
        """Nano-USD per input token."""
        return self._base.price_nano

    @property
    def max_input_tokens(self) -> int:
        """Most input tokens of a request."""
        return self._base.max_input_tokens

    def prepare(self, request: ValidRequest, started: float) -> Prepared:
        """Render a request for the fallback model."""
        prepared = self._base.decide.prepare_request(request, started=started)
        return dataclasses.replace(prepared, model=self.name)

    def check_room(self, *_: Any) -> None:
        """Refuse every request."""
        raise self.refusal

    async def answer(self, *_: Any, **__: Any) -> DecideResponse:
        """Refuse every request."""
        raise self.refusal


class Resolver(Protocol):
    """The finder of models whose names are no base model's; the families fill it."""

    async def find(self, caller: Caller, name: str) -> TunedAnswerer:
        """Return who answers calls to a name, or refuse the call; nothing is loaded."""

    async def base_of(self, caller: Caller, name: str) -> str:
        """Return the base model under a family or a number, on or off."""

    def note_use(self, account_id: str, name: str) -> None:
        """Note that a call named a family or a number; returns at once."""


#: No name of the request is a family's or a number.
NO_TUNED: Mapping[str, Answerer] = MappingProxyType({})


class UnansweredError(Exception):
    """No model answered."""

    def __init__(self, error: errors.SteelyardError, *, has_begun: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.has_begun = has_begun


class Attempts:
    """The attempts at one request: the waiting one, and how to cancel it."""

    def __init__(
        self,
        prepared: Prepared,
        candidates: tuple[Answerer, ...],
        deadline: float,
        route: str = "",
    ) -> None:
        self._prepared = prepared
        self._candidates = candidates
        self._deadline = deadline
        self._route = route
        self._waiting: Scores | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_abandoned = False
        self._has_begun = False
        #: What the model asked for answered where it was not sure.
        self.unsure: DecideResponse | None = None

    def abandon(self) -> None:
        """Stop: the caller is gone. A running pass still ends."""
        self._is_abandoned = True
        if self._waiting is not None:
            self._waiting.cancel()
        elif self._task is not None:  # its model is loading
            self._task.cancel()

    async def run(self) -> tuple[DecideResponse, Answerer]:
        """Try the models in turn; raise ``UnansweredError`` when none answered."""
        self._task = asyncio.current_task()
        try:
            if tracing.recorder is None:
                return await self._try()
            with tracing.span("decide", self._traced()) as span:
                answer, model = await self._try()
                if span is not None:
                    span.set_attributes(_trace_attributes(answer))
                return answer, model
        finally:
            self._task = None

    def _traced(self) -> Attributes:
        """Return the trace attributes before there is an answer."""
        return {
            "openinference.span.kind": "DECISION",
            "gen_ai.operation.name": "decision",
            "decision.system": _SYSTEMS.get(self._route, "steelyard"),
            "decision.request.model_name": self._candidates[0].name,
        }

    async def _try(self) -> tuple[DecideResponse, Answerer]:
        requested = self._candidates[0]
        untried = _order(self._candidates)
        put_off = [] if requested in untried else [requested]
        reason = None if untried[0] is requested else RECENTLY_UNAVAILABLE
        error: errors.SteelyardError | None = None
        while untried:
            model = untried.pop(0)
            left_s = self._deadline - perf_counter()
            try:
                answer = await self._attempt(model, left_s / 2 if untried else left_s)
            except (errors.ModelUnavailableError, errors.ContextTooLongError) as failure:
                if model is requested:  # it can never answer, and no other model may replace it
                    raise UnansweredError(failure, has_begun=False) from failure
                if not untried and error is None:  # no other model is left
                    untried, put_off = put_off, []
                continue
            except (*PASSING, *OFF) as failure:
                # Report the requested model's error; that another is off gives way to any failure.
                if error is None or model is requested or isinstance(error, OFF):
                    error = failure
                reason = reason or failure.code
                continue
            except asyncio.CancelledError:
                if self._is_abandoned:
                    if self._task is not None:
                        self._task.uncancel()
                    break
                raise
            if model is requested:
                if not untried or not self._prepared.request.escalates or not is_unsure(answer):
                    return answer, model
                self.unsure, reason = answer, UNSURE
                continue
            report = FallbackReport(from_=requested.name, to=model.name, reason=str(reason))
            novelty = answer.novelty if self.unsure is None else self.unsure.novelty
            return msgspec.structs.replace(answer, fallback=report, novelty=novelty), model
        return self._last_resort(error)

    def _last_resort(self, error: errors.SteelyardError | None) -> tuple[DecideResponse, Answerer]:
        """Return the answer that was not sure where no other model gave one, or say why there is none."""
        if self.unsure is not None:
            return self.unsure, self._candidates[0]
        raise UnansweredError(
            error or errors.DeadlineExceededError("The caller went away; nothing was charged."),
            has_begun=self._has_begun,
        )

    async def _attempt(self, model: Answerer, wait_s: float) -> DecideResponse:
        if self._is_abandoned:
            raise asyncio.CancelledError
        if wait_s < _SHORTEST_S:
            raise errors.DeadlineExceededError(
                "No answer by the deadline; nothing was charged. Try again, or ask less in one "
                "request."
            )
        had_begun = self._has_begun
        try:
            return await model.answer(self._prepared, wait_s, on_queued=self._queued)
        except errors.EngineUnavailableError as failure:
            if failure.is_unreached:  # it waited for nothing: no engine ever had it
                self._has_begun = had_begun
            raise
        finally:
            self._waiting = None

    def _queued(self, scores: Scores) -> None:
        self._has_begun = True
        self._waiting = scores


def candidates_of(
    prepared: Prepared,
    registry: ModelRegistry,
    tuned: Mapping[str, Answerer] = NO_TUNED,
    requested: Answerer | None = None,
) -> tuple[Answerer, ...]:
    """Return the models that may answer a request: the requested one, then its fallbacks."""
    requested = requested or tuned.get(prepared.model) or registry.get(prepared.model)
    fallback = prepared.request.fallback
    others: list[Answerer | None] = []
    if fallback == "auto":
        others = [
            model
            for model in registry.own
            if model.price_nano <= requested.price_nano and not model.is_connected
        ]
    elif not isinstance(fallback, str):
        others = [registry.find(name) or tuned.get(name) for name in fallback]
    fitting = [
        model
        for model in others
        if model is not None and prepared.input_tokens <= model.max_input_tokens
    ]
    return tuple(dict.fromkeys([requested, *fitting]))


def is_unsure(answer: DecideResponse) -> bool:
    """Whether a model abstains, or the context is unlike its training rows."""
    return bool(answer.novelty and answer.novelty.unlike) or any(
        result.action == ABSTAIN for result in answer.decisions.values()
    )


def reserve_nano(prepared: Prepared, candidates: tuple[Answerer, ...]) -> int:
    """Return the most that an answer may cost: of two models where the first may not be sure."""
    requested, *others = candidates
    reserved = requested.price_nano
    if prepared.request.escalates and others:
        reserved += max(model.price_nano for model in others)
    return reserved * prepared.most_tokens


def quote_nano(prepared: Prepared, requested: Answerer, model: Answerer) -> int:
    """Return the price when a model answers: never more than that of the requested model."""
    return min(requested.price_nano, model.price_nano) * prepared.most_tokens


def charge_nano(
    prepared: Prepared,
    requested: Answerer,
    model: Answerer,
    answer: DecideResponse,
    unsure: DecideResponse | None,
) -> int:
    """Return the charge of an answer, with that of a model that was unsure."""
    own = _own_charge_nano(prepared, model, answer)
    if unsure is not None and model is not requested:
        return _own_charge_nano(prepared, requested, unsure) + own
    return min(quote_nano(prepared, requested, model), own)


def _own_charge_nano(prepared: Prepared, model: Answerer, answer: DecideResponse) -> int:
    """Return the charge of a model's answer: along a route, only of the models that were called."""
    if isinstance(model, HostedRoute):
        return model.charge_nano(prepared, answer)
    n_written = answer.usage.n_written if answer.usage.thought_tokens else 0
    return model.price_nano * (prepared.input_tokens + n_written)


def _order(candidates: tuple[Answerer, ...]) -> list[Answerer]:
    """Return the models to try, in turn; all of them when every one failed recently."""
    if len(candidates) == 1:
        return list(candidates)
    healthy = [model for model in candidates if not model.failed_recently and not model.hangs]
    return healthy or list(candidates)


def _trace_attributes(answer: DecideResponse) -> Attributes:
    """Return the trace attributes of an answer (OpenInference), without its texts and outcomes."""
    decisions = list(answer.decisions.values())
    return {
        "decision.model_name": answer.model,
        "decision.response.model_name": answer.model,
        "decision.token_count.input": answer.usage.prompt_tokens,
        "gen_ai.response.model": answer.model,
        "gen_ai.usage.input_tokens": answer.usage.prompt_tokens,
        "steelyard.decision.kinds": [decision.kind for decision in decisions],
        "steelyard.decision.outcomes": [len(decision.probabilities) for decision in decisions],
        "steelyard.decision.p_top": [decision.p_top for decision in decisions],
        "steelyard.decision.acts_on_top": [
            decision.action == decision.top for decision in decisions
        ],
        "steelyard.fallback": answer.fallback is not None,
    }
