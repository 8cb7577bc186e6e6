"""The lint call on the wire: it takes a decide request and answers with warnings."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from steelyard.wire.schemas import doc
from steelyard.wire.shown import Shown

Severity = Literal["warning", "info"]


class LintWarning(Struct, frozen=True, kw_only=True):
    """One thing about how a decision is asked that may make its answers worse."""

    decision: Annotated[str, doc("Id of the decision.")]
    rule: Annotated[str, doc("Name of the rule, such as `negation`.")]
    severity: Severity
    message: Annotated[str, doc("What is wrong and what to change.")]


class LintResponse(Shown, Struct, frozen=True, kw_only=True):
    """Every warning, by decision in the request's order and then in the rules'."""

    warnings: list[LintWarning]
