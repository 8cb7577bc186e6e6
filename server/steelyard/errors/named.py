"""Errors of named decisions."""

from steelyard.errors.kinds import ConflictError


class NamedDecisionExistsError(ConflictError):
    """A named decision under a name that another has."""


class NamedDecisionLimitError(ConflictError):
    """More named decisions, versions or aliases than there may be."""


class NamedDecisionArchivedError(ConflictError):
    """A request for a named decision that is archived."""


class AliasChangedError(ConflictError):
    """A move of an alias that points elsewhere than its mover saw."""


class ComparisonNeededError(ConflictError):
    """A move of ``production`` to a version that was not compared with the one it replaces."""


class MoveRefusedError(ConflictError):
    """A move of ``production`` to a version that did not pass the comparison."""
