"""Errors of labeling."""

from __future__ import annotations

from steelyard.errors.kinds import ConflictError, GoneError, UnavailableError


class LabelingNotReadyError(ConflictError):
    """Labels of a job that has none to review."""

    code = "labeling_not_ready"


class JobFinalizedError(ConflictError):
    """Another selection of a job that became a dataset."""

    code = "job_finalized"


class SourceDeletedError(GoneError):
    """A source of queries that was deleted for good, with its teachers' answers."""

    code = "source_deleted"


class LabelingUnavailableError(UnavailableError):
    """A server without teachers."""

    code = "labeling_unavailable"
    retryable = False
