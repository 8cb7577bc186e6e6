"""The models that answer here: what each is, what it costs, and whether it answers at the moment.

A hosted model is a scorer's queue with the rules of one base model around it. What goes wrong in
an engine ends here as ``EngineUnavailableError`` with its cause in the log: a caller can only try
again, and another model may stand in (``steelyard.services.fallback``).
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedRequest
from steelyard.errors import (
    DeadlineExceededError,
    EngineUnavailableError,
    InvalidReferenceError,
    InvalidRequestError,
    ModelWarmingError,
)
from steelyard.scoring.protocol import EngineStatus, ScoredDecision
from steelyard.services.answers import Queue, wait_for_scores
from steelyard.services.decide import DecideService, Prepared, unknown_model
from steelyard.wire.decide import MAX_DECISIONS, DecideResponse
from steelyard.wire.models import Model, ModelList, ModelName, ModelReadiness

_log = logging.getLogger(__name__)

#: Seconds for which a model that failed is passed over while another can answer.
RECENT_S = 30.0
#: The name under which TypeSafe clients know the default base model.
DEFAULT_ALIAS = "jev-latest"
#: Seconds that a caller refused for an engine that hangs should wait.
_HUNG_RETRY_S = 5.0
#: An engine hangs when one call of it took more than this share of the time a request waited.
_HUNG_SHARE = 0.5
_NUMBER = re.compile(r"[a-z][a-z0-9-]{0,47}@[1-9][0-9]*")

#: The future of a request's scores.
Scores = Future[list[ScoredDecision]]


class WatchedQueue(Queue, Protocol):
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

    def check_room(self, request: RenderedRequest) -> None:
        """Refuse a request as ``submit`` would now."""
        ...


class HostedModel:
    """One base model that answers here.

    Parameters
    ----------
    decide : steelyard.services.decide.DecideService
        Prepares requests and finishes answers; it gives the model's name.
    queue : WatchedQueue
        Where requests wait for its engine.
    engine : str
        Engine and precision.
    description : str
        What it is, in a sentence.
    release_date : datetime.date
        When it came out.
    price_nano : int
        Nano-USD per input token.
    evaluation_key : str
        SHA-256 of what decides its answers.
    embed : callable, optional
        Gives unit vectors of texts; ``None`` where its engine gives none.
    engine_status : callable, optional
        Tells where its passes go, where they may go elsewhere.
    clock : callable, optional
        Seconds that only go forward.

    Notes
    -----
    Safe to use from several threads.
    """

    def __init__(
        self,
        decide: DecideService,
        queue: WatchedQueue,
        *,
        engine: str,
        description: str,
        release_date: dt.date,
        price_nano: int,
        evaluation_key: str,
        embed: Callable[[Sequence[str]], NDArray[np.float32]] | None = None,
        engine_status: Callable[[], EngineStatus | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.decide = decide
        self.queue = queue
        self.engine = engine
        self.description = description
        self.release_date = release_date
        self.price_nano = price_nano
        self.evaluation_key = evaluation_key
        self.embed = embed
        self._engine_status = engine_status
        self._clock = clock
        self._lock = threading.Lock()
        self._failed_at: float | None = None
        self._hung_call: int | None = None

    @property
    def name(self) -> str:
        """The name that requests give and answers carry."""
        return self.decide.models[0]

    @property
    def runs_on(self) -> str:
        """Engine and precision, and where: ``onnxruntime-int8``, or ``triton-int8`` elsewhere."""
        status = None if self._engine_status is None else self._engine_status()
        if status is None or status.place != "triton":
            return self.engine
        return f"triton-{self.engine.rpartition('-')[2]}"

    @property
    def max_input_tokens(self) -> int:
        """Most input tokens of a request."""
        return self.decide.limits.max_input_tokens

    @property
    def failed_recently(self) -> bool:
        """Whether it failed in the last ``RECENT_S`` seconds and has not answered since."""
        with self._lock:
            return self._failed_at is not None and self._clock() - self._failed_at < RECENT_S

    @property
    def hangs(self) -> bool:
        """Whether its engine is still in a call that outlasted the wait of a request."""
        call = self.queue.running_call
        with self._lock:
            return call is not None and call[0] == self._hung_call

    @property
    def is_away(self) -> bool:
        """Whether no engine would answer now: its server is away, and none here stands in."""
        status = None if self._engine_status is None else self._engine_status()
        return status is not None and status.place == "none"

    def check_room(self, request: RenderedRequest) -> None:
        """Refuse a request that could not be begun now; nothing is queued.

        Raises
        ------
        steelyard.errors.EngineUnavailableError
            When the engine hangs or its queue is full; ``retry_after_s`` says when to come back.
        """
        if self.hangs:
            raise EngineUnavailableError(
                f"The engine of {self.name} failed recently and has not come back; send the "
                "request again after Retry-After, or name another model.",
                retry_after_s=_HUNG_RETRY_S,
            )
        self.queue.check_room(request)

    async def answer(
        self, prepared: Prepared, wait_s: float, *, on_queued: Callable[[Scores], None]
    ) -> DecideResponse:
        """Score a request and finish its answer.

        Parameters
        ----------
        prepared : Prepared
            From this model's ``decide``, or from that of the model it stands in for.
        wait_s : float
            The longest wait for the engine, in seconds.
        on_queued : callable
            Called with the future of the scores once the request is in the queue.

        Raises
        ------
        steelyard.errors.EngineUnavailableError
            When the queue is full, or the engine hangs, fails or answers what cannot be used.
        steelyard.errors.ModelWarmingError
            When the engine is elsewhere, and still loads the model.
        steelyard.errors.DeadlineExceededError
            When there is no answer in time.
        steelyard.errors.InvalidRequestError
            When a policy's expected costs are too large for a number.
        """
        if not prepared.rendered.decisions:
            # A request in another dialect may have one outcome everywhere: nothing is scored.
            return self.decide.finish(prepared, [])
        self.check_room(prepared.rendered)
        submitted = perf_counter()
        future = self.queue.submit(prepared.rendered, wait_s)
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
        except DeadlineExceededError:
            self._note_late(wait_s)
            raise
        except EngineUnavailableError as error:
            self._note_failure()
            # A fresh one: an engine may raise the same object for every request.
            raise EngineUnavailableError(
                error.message, retry_after_s=error.retry_after_s
            ) from error
        except ModelWarmingError as error:
            self._note_failure()
            raise ModelWarmingError(error.message, retry_after_s=error.retry_after_s) from error
        except InvalidRequestError:
            raise
        except Exception as error:
            self._note_failure()
            _log.exception("The engine of %s failed.", self.name)
            raise EngineUnavailableError(
                f"The engine of {self.name} failed on this request; send it again, or name "
                "another model."
            ) from error
        with self._lock:
            self._failed_at = None
        return answer

    def describe(self) -> Model:
        """Give the model as the wire has it."""
        return Model(
            id=self.name,
            name=self.name,
            status="ready",
            description=self.description,
            evaluation_key=self.evaluation_key,
            decision_price_nano=str(self.price_nano),
            family=self.name,
            created_at=dt.datetime.combine(self.release_date, dt.time(), dt.UTC).timestamp(),
            max_input_tokens=self.max_input_tokens,
            max_prompt_tokens=self.max_input_tokens,
            max_questions=MAX_DECISIONS,
            calibration="not_measured",
            engine=self.runs_on,
            release_date=self.release_date.isoformat(),
        )

    def _note_failure(self) -> None:
        with self._lock:
            self._failed_at = self._clock()

    def _note_late(self, wait_s: float) -> None:
        self._note_failure()
        call = self.queue.running_call
        # An engine that was in one call for most of the wait hangs; one that went from call to
        # call is only busy. When the call ends after all, the engine is back by itself.
        if call is not None and call[1] >= wait_s * _HUNG_SHARE:
            with self._lock:
                self._hung_call = call[0]


class ModelRegistry:
    """The base models of a server, by name.

    Parameters
    ----------
    hosted : sequence of HostedModel
        At least one, with distinct names; the first is the default.
    engine_statuses : callable, optional
        Tells where passes of each model, and of each fine-tune loaded, go; by default they run in
        this process and nowhere else.
    """

    def __init__(
        self,
        hosted: Sequence[HostedModel],
        *,
        engine_statuses: Callable[[], Mapping[str, EngineStatus]] | None = None,
    ) -> None:
        self._hosted = tuple(hosted)
        self._engine_statuses = engine_statuses
        self._by_name = {model.name: model for model in self._hosted}
        if not self._hosted or len(self._by_name) != len(self._hosted):
            raise ValueError("A registry needs at least one model, and names that are distinct.")

    def engine_statuses(self) -> Mapping[str, EngineStatus]:
        """Tell where passes go, by model; those left out run in this process alone."""
        return {} if self._engine_statuses is None else self._engine_statuses()

    @property
    def default(self) -> HostedModel:
        """What answers a request that names no model."""
        return self._hosted[0]

    @property
    def hosted(self) -> tuple[HostedModel, ...]:
        """Every model, the default first."""
        return self._hosted

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models, the default's first."""
        return tuple(self._by_name)

    def find(self, name: str | None) -> HostedModel | None:
        """Give the model of a name, the default without one; ``None`` when there is no such."""
        return self.default if name is None else self._by_name.get(name)

    def get(self, name: str | None) -> HostedModel:
        """Give the model of a name, the default without one.

        Raises
        ------
        steelyard.errors.NotFoundError
            When there is no such model.
        """
        model = self.find(name)
        if model is None:
            raise unknown_model(str(name), self.names)
        return model

    def list(self) -> ModelList:
        """Give every model as the wire has it; the default's alias is among the names."""
        return ModelList(
            data=[model.describe() for model in self._hosted],
            models=[
                *(_named(model.name, model, model.description) for model in self._hosted),
                _named(DEFAULT_ALIAS, self.default, f"Another name of {self.default.name}."),
            ],
        )

    def describe(self, reference: str) -> Model:
        """Give one model as the wire has it.

        Parameters
        ----------
        reference : str
            A base model's name, or a number such as ``router@3``.

        Raises
        ------
        steelyard.errors.InvalidReferenceError
            When it has an ``@`` and is no number.
        steelyard.errors.NotFoundError
            When there is no such model.
        """
        _check_reference(reference)
        return self.get(reference).describe()

    def readiness(self, reference: str) -> ModelReadiness:
        """Tell whether a call to a model would be answered now; raises what ``describe`` does."""
        _check_reference(reference)
        model = self.get(reference)
        if model.hangs or model.failed_recently or model.is_away:
            return ModelReadiness(model=model.name, ready=False, reason="engine_unavailable")
        return ModelReadiness(model=model.name, ready=True)


def _named(name: str, model: HostedModel, description: str) -> ModelName:
    return ModelName(
        name=name, description=description, release_date=model.release_date.isoformat()
    )


def _check_reference(reference: str) -> None:
    if "@" in reference and not _NUMBER.fullmatch(reference):
        raise InvalidReferenceError(
            f"{reference!r} names no model: a family's model is written NAME@NUMBER, such as "
            "router@3."
        )
