"""The models that answer here: description, price, and present state.

A hosted model is a scorer's queue with the rules of one base model around it. An engine's failure ends
here as ``EngineUnavailableError`` with its cause in the log: a caller can only try again, and another
model may stand in (``steelyard.serving.fallback``).
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard import errors
from steelyard.decisions.rendering import RenderedRequest
from steelyard.decisions.tokens import TokenCounter
from steelyard.decisions.wire import DecideResponse
from steelyard.errors.kinds import UnprocessableError
from steelyard.scoring.protocol import EngineStatus, ScoredDecision, Scorer
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.scoring.shares import Share
from steelyard.serving.decide import DecideService, Prepared, ScoringQueue, wait_for_scores
from steelyard.serving.refusals import unknown_model

_log = logging.getLogger(__name__)

#: Seconds for which a model that failed is passed over while another can answer.
RECENT_S = 30.0
#: An engine hangs when one call of it took more than this share of the time a request waited.
_HUNG_SHARE = 0.5

#: Seconds that a caller refused for an engine that hangs should wait.
_HUNG_RETRY_S = 5.0

#: The number of an engine's current call and its seconds; ``None`` when it is idle.
RunningCall = tuple[int, float] | None
#: The future of a request's scores.
Scores = Future[list[ScoredDecision]]


class WatchedQueue(ScoringQueue, Protocol):
    """A queue that tells how it goes."""

    @property
    def n_waiting(self) -> int:
        """Requests that wait for the engine."""
        ...

    @property
    def max_queue(self) -> int:
        """Requests that may wait."""
        ...

    @property
    def running_call(self) -> tuple[int, float] | None:
        """The number of the engine's current call and its seconds; ``None`` when it is idle."""
        ...

    @property
    def rest_s(self) -> float:
        """Seconds for which the server that it asks is left alone after failures."""
        ...

    def end_rest(self) -> None:
        """Allow the next request to try, though the server is left alone."""
        ...

    def check_room(self, request: RenderedRequest, share: Share = ...) -> None:
        """Refuse a request as ``submit`` would now."""
        ...


class ModelHealth:
    """How the last calls of one model went, and where its passes go; thread-safe."""

    def __init__(
        self,
        engine_status: Callable[[], EngineStatus | None] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine_status, self._clock = engine_status, clock
        self._lock = threading.Lock()
        self._failed_at: float | None = None
        self._hung_call: int | None = None

    @property
    def place(self) -> str | None:
        """Where passes go; ``None`` where they can run in this process alone."""
        status = None if self._engine_status is None else self._engine_status()
        return None if status is None else status.place

    @property
    def failed_recently(self) -> bool:
        """Whether it failed in the last ``RECENT_S`` seconds and has not answered since."""
        with self._lock:
            return self._failed_at is not None and self._clock() - self._failed_at < RECENT_S

    @property
    def has_hung(self) -> bool:
        """Whether a call outlasted the wait of a request, and no other was seen since."""
        return self._hung_call is not None

    def hangs_in(self, call: RunningCall) -> bool:
        """Whether the call that runs is one that outlasted the wait of a request."""
        with self._lock:
            return call is not None and call[0] == self._hung_call

    def note_answer(self) -> None:
        """Note that it answered."""
        with self._lock:
            self._failed_at = None

    def note_failure(self) -> None:
        """Note that it failed."""
        with self._lock:
            self._failed_at = self._clock()

    def note_late(self, wait_s: float, call: RunningCall) -> None:
        """Note that a request timed out, and which call is running."""
        self.note_failure()
        # An engine that was in one call for most of the wait hangs; one that went from call to
        # call is only busy. When the call ends after all, the engine is back by itself.
        if call is not None and call[1] >= wait_s * _HUNG_SHARE:
            with self._lock:
                self._hung_call = call[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model that answers here: its kind, and its description."""

    decide: DecideService
    engine: str
    description: str
    release_date: dt.date
    evaluation_key: str
    embed: Callable[[Sequence[str]], NDArray[np.float32]] | None = None
    #: Whether it answers on another server, which then sees the request, or by a route.
    is_connected: bool = False
    #: Of a connected model: names the source of its logits, as a scorer's does.
    sha256: str = ""
    #: Whether its probabilities were calibrated; those of connected models may not be.
    is_calibrated: bool = True
    #: Whether an operator lets it label rows.
    is_teacher: bool = False
    #: Loads it before a request comes; ``None`` where it is loaded already or when it is used.
    warm_up: Callable[[], None] | None = None
    #: Returns the name that its server gave itself in its last answer; empty where it gave none.
    provider_model: Callable[[], str] = str


class HostedModel:
    """One base model that answers here; safe to use from several threads."""

    #: Whether it asks models in turn: none of its own, and none to fine-tune.
    is_route = False

    def __init__(
        self,
        model: ModelFacts,
        queue: WatchedQueue,
        *,
        price_nano: int,
        health: ModelHealth | None = None,
    ) -> None:
        self.queue, self.price_nano = queue, price_nano
        self.health = health or ModelHealth()
        self.decide = model.decide
        #: The name that requests give and answers carry.
        self.name = model.decide.model_name
        #: Most input tokens of a request.
        self.max_input_tokens = model.decide.limits.max_input_tokens
        self.engine, self.description = model.engine, model.description
        self.release_date, self.evaluation_key = model.release_date, model.evaluation_key
        self.embed, self.warm_up = model.embed, model.warm_up
        self.is_connected, self.is_calibrated = model.is_connected, model.is_calibrated
        self.is_teacher, self.sha256 = model.is_teacher, model.sha256
        self.provider_model = model.provider_model

    @property
    def runs_on(self) -> str:
        """Engine and precision, and where: ``onnxruntime-int8``, or ``triton-int8`` elsewhere."""
        if self.health.place != "triton":
            return self.engine
        return f"triton-{self.engine.rpartition('-')[2]}"

    @property
    def failed_recently(self) -> bool:
        """Whether it failed in the last ``RECENT_S`` seconds and has not answered since."""
        return self.health.failed_recently

    @property
    def hangs(self) -> bool:
        """Whether its engine is still in a call that outlasted the wait of a request."""
        return self.health.has_hung and self.health.hangs_in(self.queue.running_call)

    @property
    def is_away(self) -> bool:
        """Whether no engine would answer now: its server is away, and none here stands in."""
        return self.health.place == "none"

    @property
    def can_answer(self) -> bool:
        """Whether a call would be answered now, as far as is known without one."""
        return not (self.hangs or self.failed_recently or self.is_away)

    def check_room(self, prepared: Prepared) -> None:
        """Refuse a request that could not be begun now; nothing is queued."""
        self.require_room(prepared.rendered, prepared.share)

    def require_room(self, request: RenderedRequest, share: Share) -> None:
        """Refuse a rendered request that could not be begun now."""
        self._check_hanging()
        self.queue.check_room(request, share)

    def _check_hanging(self) -> None:
        if self.hangs:
            raise errors.EngineUnavailableError(
                f"The engine of {self.name} failed recently and has not come back; send the "
                "request again after Retry-After, or name another model.",
                retry_after_s=_HUNG_RETRY_S,
            )

    async def answer(
        self, prepared: Prepared, wait_s: float, *, on_queued: Callable[[Scores], None]
    ) -> DecideResponse:
        """Score a request and finish its answer."""
        if not prepared.rendered.decisions:
            # A request in another dialect may have one outcome everywhere: nothing is scored.
            return self.decide.finish(prepared, [])
        self._check_hanging()
        submitted = perf_counter()
        future = self.queue.submit(prepared.rendered, wait_s, prepared.share)
        on_queued(future)
        try:
            scored = await wait_for_scores(future, wait_s)
            started = getattr(future, "started_at", submitted)
            answer = self.decide.finish(
                prepared,
                scored,
                queue_ms=(started - submitted) * 1000,
                score_ms=(perf_counter() - started) * 1000,
            )
            if prepared.request.explain:
                left_s = wait_s - (perf_counter() - submitted)
                left_out = self.decide.left_out_of(prepared, scored)
                answer = self.decide.explain(
                    prepared,
                    answer,
                    scored,
                    await self._score_all(left_out, left_s, prepared.share),
                )
        except errors.DeadlineExceededError:
            self.health.note_late(wait_s, self.queue.running_call)
            raise
        except errors.EngineUnavailableError as error:
            self.health.note_failure()
            # A fresh one: an engine may raise the same object for every request.
            raise errors.EngineUnavailableError(
                error.message, retry_after_s=error.retry_after_s, is_unreached=error.is_unreached
            ) from error
        except errors.ModelWarmingError as error:
            self.health.note_failure()
            raise errors.ModelWarmingError(
                error.message, retry_after_s=error.retry_after_s
            ) from error
        except errors.ContextTooLongError as error:  # by the tokens of a connected model
            path = prepared.request.context_path
            raise errors.ContextTooLongError(error.message, path=path) from error
        except UnprocessableError:
            raise
        except Exception as error:
            self.health.note_failure()
            _log.exception("The engine of %s failed.", self.name)
            raise errors.EngineUnavailableError(
                f"The engine of {self.name} failed on this request; send it again, or name "
                "another model."
            ) from error
        self.health.note_answer()
        return answer

    async def _score_all(
        self, requests: Sequence[RenderedRequest], wait_s: float, share: Share
    ) -> list[list[ScoredDecision]]:
        """Score several requests one after another, so that none is refused for those before it."""
        ends = perf_counter() + wait_s
        scored: list[list[ScoredDecision]] = []
        for request in requests:
            left_s = ends - perf_counter()
            future = self.queue.submit(request, left_s, share)
            try:
                scored.append(await wait_for_scores(future, left_s))
            finally:
                future.cancel()
        return scored


@dataclass(frozen=True, slots=True)
class Base:
    """A base model under tuned ones."""

    hosted: HostedModel
    scorer: Scorer


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of base models by the models' names, and the host that they run on beside."""

    bases: Mapping[str, Base]
    host: RemoteHost | None


class ModelRegistry:
    """The base models of a server, by name."""

    def __init__(
        self,
        hosted: Sequence[HostedModel],
        *,
        engine_statuses: Callable[[], Mapping[str, EngineStatus]] | None = None,
        connected: Callable[[], Sequence[HostedModel]] = tuple,
    ) -> None:
        #: The models of this server itself, the default first.
        self.own = tuple(hosted)
        self._connected = connected
        self._engine_statuses = engine_statuses
        self._by_name = {model.name: model for model in self.own}
        if not self.own or len(self._by_name) != len(self.own):
            raise ValueError("A registry needs at least one model, and names that are distinct.")

    def engine_statuses(self) -> Mapping[str, EngineStatus]:
        """Return where passes go, by model; those left out run in this process alone."""
        return {} if self._engine_statuses is None else self._engine_statuses()

    @property
    def default(self) -> HostedModel:
        """The model of requests that name none."""
        return self.own[0]

    @property
    def hosted(self) -> tuple[HostedModel, ...]:
        """Every model, the default first, those of other servers last."""
        return (*self.own, *self._connected())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models, the default's first."""
        return tuple(model.name for model in self.hosted)

    def warm_up(self) -> None:
        """Begin to load models before the first request."""
        for model in self.hosted:
            if model.warm_up is not None:
                model.warm_up()

    def end_rests(self) -> None:
        """Allow tries of connected models' servers that are left alone after failures."""
        for model in self._connected():
            model.queue.end_rest()

    def tokenizer_of(self, name: str) -> tuple[TokenCounter, int]:
        """Return a base model's tokenizer, and the most input tokens of a request to it."""
        hosted = self.get(name)
        return hosted.decide.tokenizer, hosted.max_input_tokens

    def find(self, name: str | None) -> HostedModel | None:
        """Return the model of a name, or the default model without a name; ``None`` if unknown."""
        if name is None:
            return self.own[0]
        own = self._by_name.get(name)
        return own or next((model for model in self._connected() if model.name == name), None)

    def get(self, name: str | None) -> HostedModel:
        """Return the model of a name, the default without one."""
        model = self.find(name)
        if model is None:
            raise unknown_model(str(name), self.names)
        return model
