"""Errors of review drafts."""

from steelyard.errors.kinds import ConflictError


class DraftConflictError(ConflictError):
    """An edit of rows that another edited meanwhile; ``details`` has each row as it is now."""


class DraftChangedError(ConflictError):
    """A draft that is no longer as the caller saw it."""


class DraftSealedError(ConflictError):
    """An edit of a draft that became a dataset or a version."""


class RowsLabelledApartError(ConflictError):
    """An edit of rows that reviewers label apart, before all have answered."""


class NothingToUndoError(ConflictError, LookupError):
    """An undo or a redo of a reviewer who has nothing to undo or redo."""
