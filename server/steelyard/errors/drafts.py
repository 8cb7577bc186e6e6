"""What is refused about drafts of reviews."""

from __future__ import annotations

from steelyard.errors.base import SteelyardError


class DraftConflictError(SteelyardError, RuntimeError):
    """An edit of rows that another edited meanwhile; ``details`` has each row as it is now."""

    code = "draft_conflict"
    status = 409


class DraftChangedError(SteelyardError, RuntimeError):
    """A draft that is no longer as the caller saw it."""

    code = "draft_changed"
    status = 409


class DraftSealedError(SteelyardError, RuntimeError):
    """An edit of a draft that became a dataset or a version."""

    code = "draft_sealed"
    status = 409


class NothingToUndoError(SteelyardError, LookupError):
    """An undo or a redo of a reviewer who has nothing to undo or redo."""

    code = "nothing_to_undo"
    status = 409
