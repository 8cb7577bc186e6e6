"""Calls of the routes of named decisions: one function a route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from steelyard.client.answers import DecideAnswer
from steelyard.client.calls import Call, segment, write
from steelyard.client.decide_calls import Context, Decisions
from steelyard.client.routes import route
from steelyard.growth.wire import Growth, GrowthPolicy
from steelyard.named.comparison_wire import ComparisonEstimate, ComparisonPage, NamedComparison
from steelyard.named.wire import (
    AliasMovePage,
    NamedDecision,
    NamedDecisionPage,
    NamedVersion,
    NamedVersionPage,
)
from steelyard.wire.storing import StoreSetting


@route("POST /v1/decide", DecideAnswer, is_scored=True)
def decide(
    decision: str,
    context: Context,
    *,
    fields: Mapping[str, Any] | None = None,
    store: bool | Literal["features"] | None = None,
    metadata: Mapping[str, str | float | bool | None] | None = None,
    idempotency_key: str | None = None,
) -> Call[DecideAnswer]:
    """Answer a named decision about one context: ``POST /v1/decide``.

    ``decision`` is ``name``, ``name@alias`` or ``name@7``; ``production`` without either. ``fields``
    are values of the fields that its version declares. The other arguments are those of
    ``Client.decide``.
    """


@route("POST /v1/named-decisions", NamedDecision)
def create(
    name: str,
    decisions: Decisions,
    *,
    model: str | None = None,
    fallback: str | Sequence[str] | None = None,
    temperature: float | None = None,
    escalate: bool | None = None,
    fields: Mapping[str, Mapping[str, Any]] | None = None,
    rules: Sequence[Mapping[str, str]] | None = None,
    otherwise: str | None = None,
    description: str | None = None,
    owner: str | None = None,
    dataset_id: str | None = None,
    store: StoreSetting | None = None,
    note: str | None = None,
    idempotency_key: str | None = None,
) -> Call[NamedDecision]:
    """Put questions, policies and a model under a name: ``POST /v1/named-decisions``.

    The name has small letters, digits, ``_`` and ``-``, at most 64, the first a letter. The
    decisions, as for ``decide``, are version 1 with the model; ``production`` points to it.
    ``fields`` declares fields that requests have beside the context, each with a ``type``; the first
    of ``rules`` whose ``when`` holds gives the ``action``, and ``otherwise`` is that of none.
    ``store`` is the most that is stored of answers, whatever a request says.
    """


@route("GET /v1/named-decisions", NamedDecisionPage)
def page(
    *, archived: bool | None = None, page_size: int = 200, cursor: str | None = None
) -> Call[NamedDecisionPage]:
    """List named decisions, newest first: ``GET /v1/named-decisions``."""


@route("GET /v1/named-decisions/{name}", NamedDecision)
def get(name: str) -> Call[NamedDecision]:
    """Return a named decision and its aliases: ``GET …/{decision}``."""


@route("PATCH /v1/named-decisions/{name}", NamedDecision)
def change(
    name: str,
    *,
    description: str | None = None,
    owner: str | None = None,
    dataset_id: str | None = None,
    store: StoreSetting | None = None,
    idempotency_key: str | None = None,
) -> Call[NamedDecision]:
    """Change a decision's description, owner, dataset or storing; an empty text removes: ``PATCH …/{decision}``."""


@route("POST /v1/named-decisions/{name}/archive", NamedDecision)
def archive(
    name: str, *, archived: bool = True, idempotency_key: str | None = None
) -> Call[NamedDecision]:
    """Archive it, or bring it back: ``POST …/{decision}/archive``."""


@route("POST /v1/named-decisions/{name}/versions", NamedVersion)
def add_version(
    name: str,
    decisions: Decisions,
    *,
    model: str | None = None,
    fallback: str | Sequence[str] | None = None,
    temperature: float | None = None,
    escalate: bool | None = None,
    fields: Mapping[str, Mapping[str, Any]] | None = None,
    rules: Sequence[Mapping[str, str]] | None = None,
    otherwise: str | None = None,
    note: str | None = None,
    idempotency_key: str | None = None,
) -> Call[NamedVersion]:
    """Add a version, or return the one with this content: ``POST …/{decision}/versions``."""


@route("GET /v1/named-decisions/{name}/versions", NamedVersionPage)
def version_page(
    name: str, *, page_size: int = 200, cursor: str | None = None
) -> Call[NamedVersionPage]:
    """List versions, newest first: ``GET …/{decision}/versions``."""


@route("GET /v1/named-decisions/{name}/versions/{version}", NamedVersion, version=str)
def version(name: str, version: int | str = "production") -> Call[NamedVersion]:
    """Return a version by number or alias: ``GET …/{decision}/versions/{version}``."""


@route("PUT /v1/named-decisions/{name}/aliases/{alias}", NamedDecision)
def move(
    name: str,
    alias: str,
    version: int,
    *,
    expected: int | None = None,
    reason: str | None = None,
    overrule: str | None = None,
    idempotency_key: str | None = None,
) -> Call[NamedDecision]:
    """Point an alias to a version: ``PUT …/{decision}/aliases/{alias}``.

    The move is refused unless the alias points to ``expected`` now. ``reason`` is for people;
    ``overrule`` says why ``production`` moves although no comparison passed the version.
    """


@route("POST /v1/named-decisions/{name}/aliases/{alias}/rollback", NamedDecision)
def roll_back(
    name: str,
    alias: str = "production",
    *,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Call[NamedDecision]:
    """Undo the last move of an alias: ``POST …/{decision}/aliases/{alias}/rollback``."""


def share(
    name: str,
    to: str,
    share: float,
    *,
    alias: str = "production",
    steps: Sequence[float] = (),
    step_hours: float = 24.0,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Call[NamedDecision]:
    """Send another alias a share of an alias's requests: ``PUT …/aliases/{alias}/share``.

    ``to`` answers the share, at most 0.9; 0 ends it. ``steps`` are the shares that follow by
    themselves, each larger, every ``step_hours``; the server takes them by its own clock.
    """
    fields = {"to": to, "share": share, "reason": reason}
    if steps:
        fields |= {"steps": list(steps), "step_hours": step_hours}
    path = f"/v1/named-decisions/{segment(name)}/aliases/{segment(alias)}/share"
    return write(path, NamedDecision, fields, key=idempotency_key, method="PUT")


@route("GET /v1/named-decisions/{name}/history", AliasMovePage)
def history_page(
    name: str, *, page_size: int = 200, cursor: str | None = None
) -> Call[AliasMovePage]:
    """List moves of aliases, newest first: ``GET …/{decision}/history``."""


@route("POST /v1/named-comparisons", NamedComparison, name="decision")
def compare(
    name: str,
    version: int | str,
    *,
    against: int | str = "production",
    rows: int | None = None,
    stored: int | None = None,
    traffic_s: float | None = None,
    recorded: Sequence[Mapping[str, Any]] | None = None,
    disagreement: float | None = None,
    max_price_usd: str | None = None,
    idempotency_key: str | None = None,
) -> Call[NamedComparison]:
    """Compare two versions; nothing is moved: ``POST /v1/named-comparisons``.

    Parameters
    ----------
    version, against
        The candidate, and the version to replace: numbers or aliases.
    rows, stored
        Held-out rows and stored decisions that both are asked about, at most 1,000 each; 300 and
        200 when left out.
    traffic_s
        Take stored decisions of the last so many seconds alone.
    recorded
        Answers of another provider in place of ``against``, 1,000 at most: ``context``, ``answer``,
        perhaps ``probability`` and ``decision``.
    disagreement
        How often the candidate may answer otherwise where it answers alone, for ``switches``; .02.
    max_price_usd
        Refuse, and hold nothing, when it is dearer.
    """


@route("POST /v1/named-comparisons/estimate", ComparisonEstimate, is_question=True, name="decision")
def estimate_comparison(
    name: str,
    version: int | str,
    *,
    against: int | str = "production",
    rows: int | None = None,
    stored: int | None = None,
    traffic_s: float | None = None,
    recorded: Sequence[Mapping[str, Any]] | None = None,
) -> Call[ComparisonEstimate]:
    """Return the texts, tokens and price of ``compare`` with these arguments: ``POST …/estimate``; asks nothing."""


@route("GET /v1/named-comparisons/{comparison_id}", NamedComparison)
def comparison(comparison_id: str) -> Call[NamedComparison]:
    """Return a comparison: ``GET /v1/named-comparisons/{comparison}``."""


@route("GET /v1/named-comparisons", ComparisonPage, name="decision")
def comparison_page(
    name: str | None = None, *, page_size: int = 200, cursor: str | None = None
) -> Call[ComparisonPage]:
    """List comparisons, newest first: ``GET /v1/named-comparisons``."""


@route("POST /v1/named-comparisons/{comparison_id}/cancel", NamedComparison)
def cancel_comparison(
    comparison_id: str, *, idempotency_key: str | None = None
) -> Call[NamedComparison]:
    """Stop a comparison; nothing is charged: ``POST …/{comparison}/cancel``."""


@route("GET /v1/named-decisions/{name}/growth", Growth)
def growth(name: str) -> Call[Growth]:
    """Return a decision's growth policy, and why it waits: ``GET …/{decision}/growth``."""


@route("PUT /v1/named-decisions/{name}/growth", Growth)
def grow(
    name: str,
    policy: GrowthPolicy = "propose",
    *,
    family: str | None = None,
    at_least: int | None = None,
    margin: float | None = None,
    shadow: int | None = None,
    judge_rows: float | None = None,
    novel: float | None = None,
    max_price_usd: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Growth]:
    """Set a decision's growth policy, from rows to its own family: ``PUT …/{decision}/growth``.

    Parameters
    ----------
    policy
        ``rows``, ``propose``, or ``move``: the most that it may do.
    margin
        How much less often than the model before the family may be right; 0.02 by default.
    shadow
        Answers that the family gives along before it is compared; 100 by default.
    judge_rows
        The probability from which the model's own answers become training rows; none by default.
    """


@route("DELETE /v1/named-decisions/{name}/growth", Growth)
def stop_growing(name: str, *, idempotency_key: str | None = None) -> Call[Growth]:
    """Stop a growth; its datasets and families stay: ``DELETE …/{decision}/growth``."""


@route("POST /v1/named-decisions/{name}/growth/turn", Growth)
def turn_growth(name: str, *, idempotency_key: str | None = None) -> Call[Growth]:
    """Look at a growth now, and take its next step: ``POST …/{decision}/growth/turn``."""
