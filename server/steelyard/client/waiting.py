"""Waiting for work: when it is done, when it failed, and the bar meanwhile."""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from steelyard.client.display_families import WAITING_FOR
from steelyard.client.failures import NoAnswerInTimeError, UnexpectedAnswerError
from steelyard.client.progress import Show
from steelyard.errors import (
    FamilyChangedError,
    FamilyOffError,
    ModelDeletedError,
    ModelDiscardedError,
    NotFoundError,
    SteelyardError,
)
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import Family
from steelyard.wire.jobs import UNFINISHED, AnyJob, JobNoun

#: Seconds after the first of some failures in which a wait without an end of its own takes them for
#: no news.
LONGEST_SILENCE_S: Final = 60.0
#: Statuses of a proxy whose server is away.
_AWAY = frozenset({502, 503, 504})

_log = logging.getLogger(__name__)


class Patience:
    """How long a wait goes on: some seconds from now, or without end."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._ends_at = None if timeout_s is None else time.monotonic() + timeout_s

    def check(self, state: str) -> None:
        """Raise when the time is over; ``state`` describes the present, as a clause."""
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            raise NoAnswerInTimeError(
                f"After {self._timeout_s:g} s {state}; it goes on, so wait again."
            )


class Looking:
    """Looks at work that goes on without the client, over failures that may pass.

    A restart of the server ends no wait: failures are no news for ``timeout_s`` from now, or, without
    one, for ``LONGEST_SILENCE_S`` from the first that no answer followed. A first look that fails is
    raised at once, unless the server ``was_answered`` before: it may be another server's address.
    """

    def __init__(self, timeout_s: float | None, *, was_answered: bool) -> None:
        self._ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        self._was_answered = was_answered
        self._silent_since: float | None = None

    @property
    def is_silent(self) -> bool:
        """Whether the last look had no answer."""
        return self._silent_since is not None

    def __enter__(self) -> None:
        """Begin a look: a failure that may pass ends the block, and nothing else."""

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        if error is None:
            self._was_answered, self._silent_since = True, None
            return False
        is_first = self._silent_since is None
        if not isinstance(error, SteelyardError) or not self._may_pass(error):
            return False
        if is_first:
            _log.warning("No answer for now, looking again: %s", error)
        return True

    def _may_pass(self, error: SteelyardError) -> bool:
        # Between client and server a proxy may answer while the server is away.
        of_proxy = isinstance(error, UnexpectedAnswerError) and error.http_status in _AWAY
        if not self._was_answered or not (error.retryable or of_proxy):
            return False
        now = time.monotonic()
        # A look that hangs may itself take longer than the silence that is borne.
        self._silent_since = now if self._silent_since is None else self._silent_since
        gives_up_at = self._silent_since + LONGEST_SILENCE_S
        return now < (gives_up_at if self._ends_at is None else self._ends_at)


Job_ = TypeVar("Job_", bound=AnyJob)


class Following(Generic[Job_]):
    """Follows a job to its end, and shows how far it is."""

    def __init__(self, noun: JobNoun, show: Show, timeout_s: float | None) -> None:
        self._noun, self._show = noun, show
        self._patience = Patience(timeout_s)

    def has_ended(self, job: Job_) -> bool:
        """Look at the job as it is now."""
        now = job.summary.progress
        if now is None:
            self._show(job.status == "succeeded", 1, job.status)
        else:
            loss = "" if now.loss is None else f", loss {now.loss:.4f}"
            self._show(now.step, now.steps, f"{now.phase}{loss}")
        if job.status not in UNFINISHED:
            return True
        self._patience.check(f"the {self._noun.noun} is {job.status}")
        return False


_Part = TypeVar("_Part")


def part_of(client: Any, part: _Part, job_id: str) -> _Part:
    """Return the part of a client that has a job's kind; ``client.jobs`` has those of all kinds."""
    parts = vars(client).values() if part is client.jobs else ()
    nouns = ((other, getattr(other, "noun", None)) for other in parts)
    return next((other for other, noun in nouns if noun and job_id.startswith(noun.prefix)), part)


class ServingWait:
    """Waits until a family serves a model; refuses a wait that could only time out."""

    def __init__(self, model: str | Job, show: Show, timeout_s: float | None) -> None:
        self._model = model_of(model)
        self._show = show
        self._patience = Patience(timeout_s)

    def is_over(self, family: Family) -> bool:
        """Look at the family as it is now; raise when it will never serve the model."""
        served = family.served
        if served is not None and self._model in {served.ref, served.adapter}:
            self._show(1, 1, "served")
            return True
        self._check(family)
        why = (
            "it is not moving yet" if family.move is None else WAITING_FOR[family.move.waiting_for]
        )
        self._show(0, 1, why)
        serves = "no model" if served is None else served.ref
        self._patience.check(f"{family.id} serves {serves}, not {self._model}: {why}")
        return False

    def _check(self, family: Family) -> None:
        if not family.switched_on:
            raise FamilyOffError(
                f"{family.id} is off and moves to no model; switch it on with families.switch()."
            )
        mine = next(
            (model for model in family.models if self._model in {model.ref, model.adapter}), None
        )
        if mine is None:
            raise NotFoundError(
                f"{family.id} has no model {self._model}: a model joins only when its gate passes "
                "it; look at the outcome of its fine-tune."
            )
        status = mine.status
        if status != "ready":
            gone = ModelDeletedError if status == "deleted" else ModelDiscardedError
            raise gone(f"{mine.ref} was {status}; {family.id} serves it no more.")
        if family.latest is not None and family.latest.ref != mine.ref:
            raise FamilyChangedError(
                f"{family.id} moves to its latest model alone, {family.latest.ref}; wait for that, "
                f"or roll back to {mine.ref}."
            )


def model_of(model: str | Job) -> str:
    """Return a model's name, or that of the model that a fine-tune made; raise when it made none."""
    if isinstance(model, str):
        return model
    if model.output_model is None:
        raise ValueError(f"The fine-tune {model.id} made no model: {model.reason or model.status}.")
    return model.output_model
