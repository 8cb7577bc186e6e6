"""Decisions that two models answer otherwise: fixed, broken, or wrong in both, and their contexts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, cast

import panel as pn
import panel_material_ui as pmui
import polars as pl
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.errors import DatasetDeletedError
from steelyard.evaluations.wire import (
    EvaluationComparison,
    EvaluationRecord,
    FlipKind,
    FlippedRecord,
)
from steelyard_workbench.kit.basics import Boxed, action_button, html_pane, small_text, stack
from steelyard_workbench.kit.components.frame_table import FrameTable, PageRequest, TablePage
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.kit.theme import outcome_colours
from steelyard_workbench.kit.views import empty, heading
from steelyard_workbench.kit.words import cut, escape_markdown, percent_text
from steelyard_workbench.parts.evaluations.record_browser import show_text
from steelyard_workbench.parts.evaluations.scored import context_text
from steelyard_workbench.parts.review.sending import RowReview

#: The name and the meaning of each kind of flip.
KINDS: dict[FlipKind, str] = {
    "fixed": "wrong before, right after",
    "broken": "right before, wrong after",
    "changed": "wrong in both, with another answer",
}
_COLUMNS = {
    "context": ("Text", 460),
    "decision": ("Decision", 140),
    "right": ("Right", 130),
    "before": ("Before", 170),
    "after": ("After", 170),
}
_PAGE_ROWS = 10
_SHORT = 160
_NAMES = ["place", "decision", "right", "before", "after", "context"]


class FlipBrowser(Boxed):
    """The changes of a comparison, by kind; contexts come from the dataset of the evaluation ``after``."""

    def __init__(
        self, client: Client, comparison: EvaluationComparison, after: str, reviews: RowReview
    ) -> None:
        super().__init__()
        self._client, self._reviews, self._after = client, reviews, after
        # Each by its place here: whatever is chosen meanwhile, a row of the table stays the same flip.
        self._flips = [*comparison.flipped, *comparison.changed]
        names: dict[str, set[str]] = {}
        for flip in self._flips:
            names.setdefault(flip.decision_id, set()).update((*flip.right, flip.before, flip.after))
        self._colours = {id_: outcome_colours(outcomes) for id_, outcomes in names.items()}
        self._contexts: dict[str, str] = {}
        # By context and decision: the place of the row among the evaluation rows.
        self._rows: dict[tuple[str, str], int] = {}
        self._is_gone = False
        self.decision = ""
        self.counts = {
            "fixed": comparison.overall.flips.fixed,
            "broken": comparison.overall.flips.broken,
            "changed": comparison.changed_total,
        }
        first = next(
            (kind for kind in ("broken", "fixed", "changed") if self.counts[kind]), "fixed"
        )
        self.kind = pmui.RadioButtonGroup(
            label="Kind of change",
            options={f"{kind} ({count:,})": kind for kind, count in self.counts.items()},
            value=first,
        )
        self.refresh = Task(self._refresh)
        pn.bind(self.refresh.on_event, self.kind, watch=True)
        self._said = html_pane("")
        self._notes = stack()
        self._read = stack()
        self.table = FrameTable(
            self._fetch,
            what="The changes",
            id_column="place",
            columns=_COLUMNS,
            wrapped=("context",),
            chips=("right", "before", "after"),
            page_size=_PAGE_ROWS,
            on_open=lambda row: self.read(int(row["place"])),
            on_close=self._close,
        )
        self._table_box = stack(self.table)
        self._box = stack(
            heading("What changed"), self.kind, self._said, self._notes, self._table_box, self._read
        )

    @property
    def shown(self) -> Sequence[FlippedRecord]:
        """The changes of the kind and the decision that are chosen, the surest first."""
        return [self._flips[place] for place in self._places]

    @property
    def _places(self) -> list[int]:
        kind = cast("FlipKind", self.kind.value)
        return [
            place
            for place, flip in enumerate(self._flips)
            if flip.flip == kind and self.decision in ("", flip.decision_id)
        ]

    def choose(self, decision: str) -> None:
        """Show the flips of one decision alone; of every one when empty."""
        self.decision = decision
        self.refresh.start()

    def _close(self) -> None:
        self._read[:] = []
        self.table.mark(None)

    async def _refresh(self) -> None:
        self._close()
        await self.table.restart()
        self._tell()

    def read(self, place: int) -> None:
        """Open a flip by its place among all of them, of every kind."""
        self.table.mark(place)
        flip = self._flips[place]
        self._read[:] = [
            heading(f"{flip.decision_id}: {flip.flip}", level=3),
            show_text(self._context_of(flip), f"Text of change {place + 1}"),
            small_text(
                escape_markdown(
                    f"Right is {' or '.join(flip.right)}. Before: {flip.before} "
                    f"({flip.p_before:.3f}). After: {flip.after} ({flip.p_after:.3f})."
                )
            ),
        ]
        row = self._rows.get((flip.context_sha256, flip.decision_id))
        if row is not None:
            self._read.append(self._reviews.offer(self._after, row))

    def on_key(self, action: str) -> bool:
        """Go through the flips with the keys of a review."""
        return self.table.on_key(action)

    def _fetch(self, request: PageRequest) -> TablePage:
        """Return a page of flips, with their contexts while the dataset is there."""
        places = self._places
        page = places[request.offset : request.offset + request.limit]
        flips = [self._flips[place] for place in page]
        self._contexts |= self._texts(sorted({flip.context_sha256 for flip in flips}))
        rows: list[tuple[Any, ...]] = [
            (
                place,
                flip.decision_id,
                [self._chip(flip, name, name) for name in flip.right],
                [self._chip(flip, flip.before, f"{flip.before} · {percent_text(flip.p_before)}")],
                [self._chip(flip, flip.after, f"{flip.after} · {percent_text(flip.p_after)}")],
                cut(" ".join(self._context_of(flip).split()), _SHORT),
            )
            for place, flip in zip(page, flips, strict=True)
        ]
        return TablePage(pl.DataFrame(rows, schema=_NAMES, orient="row"), len(places))

    def _chip(self, flip: FlippedRecord, outcome: str, text: str) -> dict[str, str]:
        colour = self._colours[flip.decision_id][outcome]
        return {"text": text, "colour": colour, "title": ""}

    def _context_of(self, flip: FlippedRecord) -> str:
        return self._contexts.get(flip.context_sha256, "(not here any more)")

    def _texts(self, contexts: list[str]) -> dict[str, str]:
        if not contexts:
            return {}
        try:
            records = self._client.evaluations.records(self._after, contexts=contexts, context=True)
        except DatasetDeletedError:
            self._is_gone = True
            return {}
        self._is_gone = False
        scored = cast("Sequence[EvaluationRecord]", records)
        self._rows |= {(record.context_sha256, record.decision_id): record.row for record in scored}
        return {record.context_sha256: context_text(record) for record in scored}

    def _tell(self) -> None:
        kind = cast("FlipKind", self.kind.value)
        n, total = len(self.shown), self.counts[kind]
        words = f"{n:,} {kind}: {KINDS[kind]}"
        if self.decision:
            words += f", decision {self.decision}"
        elif n < total:
            words += f"; the surest {n:,} of {total:,}"
        self._said.object = f'<p role="status" style="margin:0.3em 0">{escape(words)}.</p>'
        notes: list[Viewable] = []
        if self._is_gone:
            notes.append(empty("The dataset was deleted, so the texts of these rows are gone."))
        if self.decision:
            every = "Changes of every decision"
            notes.append(action_button(every, lambda _: self.choose(""), size="small"))
        self._notes[:] = notes
        self._table_box.visible = n > 0
