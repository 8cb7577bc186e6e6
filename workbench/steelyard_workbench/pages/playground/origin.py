"""The content that the Playground opens with: a row of a dataset, a family's wording, or a named decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.client.answers import labels_of
from steelyard.datasets.wire import Example
from steelyard.decisions.named import PRODUCTION
from steelyard.errors import NotFoundError
from steelyard.named.wire import NamedVersion
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.pages.playground.decision_form import DecisionFields, fields_of
from steelyard_workbench.parts.datasets.questions import labels_text
from steelyard_workbench.parts.datasets.row_pages import at_places
from steelyard_workbench.parts.families.labels import ASK

#: The view of a row of a dataset that is asked about.
ROW = "row"


@dataclass(frozen=True, slots=True)
class AskOrigin:
    """Decisions to ask, their context, and where they are from, a row or a named decision, in Markdown."""

    text: str
    decisions: Sequence[Mapping[str, Any]]
    row: Example | None = None
    version: NamedVersion | None = None
    #: The fields of each decision, and the decision.
    fields: list[tuple[DecisionFields, Mapping[str, Any]]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", [(fields_of(sent), sent) for sent in self.decisions])


def origin_key(session: Session) -> str:
    """Return the name of the address's origin; empty without one."""
    at = f"{session.dataset} {session.version}"
    if session.dataset and session.view == ASK:
        return f"family {at}"
    if session.dataset and session.view == ROW and session.row >= 0:
        return f"row {at} {session.row}"
    return f"named {session.named}" if session.named else ""


def fetch_origin(session: Session) -> AskOrigin:
    """Fetch the content that the page opens with; raise ``NotFoundError`` when it is not there."""
    key = origin_key(session)
    return _fetch_named(session) if key.startswith("named ") else _fetch_row(session)


def _fetch_named(session: Session) -> AskOrigin:
    version = session.client.named_decisions.version(session.named, PRODUCTION)
    name = escape_markdown(session.named)
    text = f"The decision **{name}**, version {version.version}, which is in production."
    if version.fields:
        text += " Its questions alone are asked here, without its fields and rules."
    return AskOrigin(text, version.decisions, version=version)


def _fetch_row(session: Session) -> AskOrigin:
    is_row = session.view == ROW
    rows = session.client.datasets.search(
        session.dataset,
        where=at_places([session.row]) if is_row else None,
        version=session.version or None,
        limit=1,
    )
    if not rows.data:
        raise NotFoundError(f"The dataset has no row {max(session.row, 0):,}.")
    [row] = rows.data
    labels = labels_text(labels_of(row), row.decisions)
    text = (
        f"Row {session.row:,}"
        if is_row
        else "The first row of the model line's dataset, in its wording"
    )
    text += f", labelled {labels}" if labels else ""
    return AskOrigin(escape_markdown(text), row.decisions, row=row)
