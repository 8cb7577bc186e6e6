"""Errors of named decisions."""

from __future__ import annotations

from steelyard.errors.kinds import ConflictError


class NamedDecisionExistsError(ConflictError):
    """A named decision under a name that another has."""

    code = "named_decision_exists"


class NamedDecisionLimitError(ConflictError):
    """More named decisions, versions or aliases than there may be."""

    code = "named_decision_limit"


class NamedDecisionArchivedError(ConflictError):
    """A request for a named decision that is archived."""

    code = "named_decision_archived"


class AliasChangedError(ConflictError):
    """A move of an alias that points elsewhere than its mover saw."""

    code = "alias_changed"


class ComparisonNeededError(ConflictError):
    """A move of ``production`` to a version that was not compared with the one it replaces."""

    code = "comparison_needed"


class MoveRefusedError(ConflictError):
    """A move of ``production`` to a version that did not pass the comparison."""

    code = "move_refused"
