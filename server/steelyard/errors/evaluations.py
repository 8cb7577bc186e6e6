"""Errors of evaluations, and of queues of jobs."""

from steelyard.errors.kinds import (
    ConflictError,
    ThrottledError,
    UnavailableError,
    UnprocessableError,
)


class NotMeasurableError(UnprocessableError):
    """Scored decisions of which no honest figure can be given."""


class EvaluationNotReadyError(ConflictError):
    """Figures of an evaluation that has not succeeded."""


class EvaluationNotRetryableError(ConflictError):
    """A retry of an evaluation that neither failed nor was cancelled."""


class TenantQueueFullError(ThrottledError):
    """An account's own queue of jobs without a place."""

    default_retry_after_s = 5.0


class QueueFullError(UnavailableError):
    """The server's queue of jobs without a place."""

    default_retry_after_s = 5.0
