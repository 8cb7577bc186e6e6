"""Errors of labeling."""

from steelyard.errors.kinds import ConflictError, GoneError, UnavailableError


class LabelingNotReadyError(ConflictError):
    """Labels of a job that has none to review."""


class JobFinalizedError(ConflictError):
    """Another selection of a job that became a dataset."""


class SourceDeletedError(GoneError):
    """A source of queries that was deleted for good, with its teachers' answers."""


class LabelingUnavailableError(UnavailableError):
    """A server without teachers."""

    retryable = False
