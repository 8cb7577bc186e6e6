"""The account's named decisions as a table whose lines open them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.decision_log.wire import DecisionSummary
from steelyard.named.wire import NamedDecision
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.words import share_text
from steelyard_workbench.parts.named.looking import last_days

#: Archived decisions that are listed.
_MOST_ARCHIVED = 20


@dataclass(frozen=True, slots=True)
class NamedListing:
    """The account's named decisions, the newest first, with the last day of those at the top."""

    decisions: Sequence[NamedDecision]
    days: Mapping[str, DecisionSummary]
    archived: Sequence[NamedDecision] = ()


def list_decisions(client: Client) -> NamedListing:
    """Fetch the account's named decisions; it blocks."""
    decisions = list(client.named_decisions.list())
    archived = list(islice(client.named_decisions.list(archived=True), _MOST_ARCHIVED))
    return NamedListing(decisions, last_days(client, [each.name for each in decisions]), archived)


def show_decisions(
    listed: NamedListing, session: Session, label: str = "Named decisions"
) -> Viewable:
    """Show named decisions as a table whose lines open them."""
    decisions, days = listed.decisions, listed.days
    rows = [
        [
            each.name,
            each.description or "",
            ", ".join(f"{alias.alias} {alias.version}" for alias in each.aliases),
            f"{days[each.name].answers:,}" if each.name in days else "",
            share_text(days[each.name].accuracy) if each.name in days else "",
            each.owner or "",
        ]
        for each in decisions
    ]
    return mark_table(
        ("decision", "for", "versions in use", "answers today", "right", "owner"),
        rows,
        label=label,
        open_=lambda place: session.open("decisions", named=decisions[place].name),
        opens="Open the decision",
        links=[session.address("decisions", named=each.name) for each in decisions],
    )
