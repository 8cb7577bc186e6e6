"""What is refused about evaluations."""

from __future__ import annotations

from steelyard.errors.base import SteelyardError


class NotMeasurableError(SteelyardError, ValueError):
    """Scored decisions of which no honest figure can be given."""

    code = "not_measurable"
    status = 422


class EvaluationNotReadyError(SteelyardError, RuntimeError):
    """Figures of an evaluation that has not succeeded."""

    code = "evaluation_not_ready"
    status = 409


class EvaluationNotRetryableError(SteelyardError, RuntimeError):
    """A retry of an evaluation that neither failed nor was cancelled."""

    code = "evaluation_not_retryable"
    status = 409
