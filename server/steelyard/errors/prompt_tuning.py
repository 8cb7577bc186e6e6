"""Errors of prompt tuning."""

from steelyard.errors.datasets import TooManyRowsError
from steelyard.errors.kinds import ConflictError, UnprocessableError


class TuningNotSucceededError(ConflictError):
    """Label issues of a job that has not succeeded."""


class ConflictingDecisionError(UnprocessableError):
    """A decision that training rows word in several ways."""


class StructuredWordingError(UnprocessableError):
    """A decision whose wording is not plain text."""


class TooFewPerOutcomeError(UnprocessableError):
    """An outcome that too few training rows expect."""


class TooManyTuningRowsError(TooManyRowsError):
    """More rows than a wording is tuned on; the rows are there already, so nothing is too large."""

    status = 422


class UnbalancedSplitError(UnprocessableError):
    """A decision that rows of one side alone ask."""
