"""Errors of prompt tuning."""

from __future__ import annotations

from steelyard.errors.datasets import TooManyRowsError
from steelyard.errors.kinds import ConflictError, UnprocessableError


class TuningNotSucceededError(ConflictError):
    """Label issues of a job that has not succeeded."""

    code = "tuning_not_succeeded"


class ConflictingDecisionError(UnprocessableError):
    """A decision that training rows word in several ways."""

    code = "conflicting_decision"


class StructuredWordingError(UnprocessableError):
    """A decision whose wording is not plain text."""

    code = "structured_wording"


class TooFewPerOutcomeError(UnprocessableError):
    """An outcome that too few training rows expect."""

    code = "too_few_per_outcome"


class TooManyTuningRowsError(TooManyRowsError):
    """More rows than a wording is tuned on; the rows are there already, so nothing is too large."""

    status = 422


class UnbalancedSplitError(UnprocessableError):
    """A decision that rows of one side alone ask."""

    code = "unbalanced_split"
