"""The scored decisions of an evaluation, the worst first: chosen by a chart or by hand, and read."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Sequence
from html import escape
from itertools import islice
from typing import Any, get_args

import panel as pn
import panel_material_ui as pmui
import param
import polars as pl
from panel.viewable import Viewable

from steelyard.errors import DatasetDeletedError
from steelyard.evaluations.queries_wire import RecordOrder
from steelyard.evaluations.wire import (
    ConfusionMatrix,
    Evaluation,
    EvaluationDetail,
    EvaluationRecord,
)
from steelyard.wire.queries import ExportFormat
from steelyard_workbench.kit.basics import (
    Boxed,
    action_button,
    filter_fields,
    html_pane,
    small_text,
    stack,
)
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.files import ExportButtons
from steelyard_workbench.kit.components.frame_table import FrameTable, PageRequest, TablePage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Task
from steelyard_workbench.kit.theme import FONT, TEXT, token
from steelyard_workbench.kit.views import empty, heading
from steelyard_workbench.kit.words import cut, escape_markdown
from steelyard_workbench.parts.evaluations.charts import TITLES, bin_name
from steelyard_workbench.parts.evaluations.scored import (
    RecordChoice,
    context_text,
    filter_from,
    query_of,
    right_outcomes,
)
from steelyard_workbench.parts.review.sending import RowReview

ORDERS: dict[str, RecordOrder] = {
    "The worst first": "loss",
    "The surest first": "surest",
    "The least sure first": "least_sure",
    "As in the dataset": "row",
}
_ANY = ""
_PAGE_ROWS = 10
#: Records that are at hand: those of the pages that were fetched last, shown or overtaken.
_MOST_RECORDS = 20 * _PAGE_ROWS
_SHORT = 160
_PRE = (
    f"white-space:pre-wrap;overflow-wrap:anywhere;margin:0;padding:0.6em;font:{TEXT}/1.5 {FONT};"
    f"border:1px solid {token('line')};border-radius:8px;background:{token('surface')};"
    "max-height:22em;overflow:auto;unicode-bidi:plaintext"
)
_NAMES = ["place", "row", "decision", "right", "answered", "p_top", "measure", "context"]


class RecordBrowser(Boxed):
    """The scored decisions of one evaluation; the address has the filter, the session the row read."""

    def __init__(
        self, session: Session, evaluation: Evaluation, detail: EvaluationDetail, scope: Scope
    ) -> None:
        self._session, self.client = session, session.client
        self._evaluation, self._detail = evaluation, detail
        self._reviews = RowReview(session, scope)
        self._is_filling = False
        self._has_contexts = True
        # By their places: whichever answer came last, a row of the table stays the same decision.
        self.records: dict[str, EvaluationRecord] = {}
        self._keeping = threading.Lock()
        self.chosen = filter_from(session.query)
        self.opened: EvaluationRecord | None = None
        self.refresh = Task(self._refresh, scope=scope)
        self._make_fields()
        super().__init__()
        self._fill_fields()
        self._said = html_pane("")
        self._notes = stack()
        self._read = stack()
        self.table = self._make_table()
        self._table_box = stack(self.table)
        self.exports = ExportButtons(self._export, lambda ending: f"{evaluation.id}.{ending}")
        self._box = self._make_box()

    def _make_table(self) -> FrameTable:
        return FrameTable(
            self._fetch,
            what="The scored decisions",
            id_column="place",
            columns={
                "row": ("row", 60),
                "decision": ("decision", 110),
                "right": ("right", 110),
                "answered": ("answered", 110),
                "p_top": ("probability", 100),
                "measure": ("loss" if self._evaluation.method == "sft" else "scaled reward", 90),
                "context": ("text", 440),
            },
            page_size=_PAGE_ROWS,
            on_open=lambda row: self.read(str(row["place"])),
            on_close=self._close,
        )

    def _make_box(self) -> pn.Column:
        return stack(
            heading("Rows"),
            filter_fields(
                *(self.decision, self._target, self._top, self._bin, self._slice),
                *(self._order, self.wrong, self._clear),
                is_open=not self.chosen.is_all,
            ),
            self._said,
            self._notes,
            self._table_box,
            self.exports,
            small_text("Click a row, or press `j` and `k`, to read it; `[` and `]` turn pages."),
            self._read,
        )

    def _export(self, format_: ExportFormat) -> bytes:
        """Return the decisions that are looked at, in their order."""
        return self.client.evaluations.export(
            self._evaluation.id, format=format_, **self.chosen.client_filters()
        )

    async def _refresh(self) -> None:
        self._fill_fields()
        self._close()
        await self.table.restart()
        self._tell()

    def choose(self, chosen: RecordChoice) -> None:
        """Look at other decisions; the order stays when the new choice has the default."""
        if chosen.order == RecordChoice().order:
            chosen = dataclasses.replace(chosen, order=self.chosen.order)
        self.chosen = chosen
        self._session.query = query_of(chosen)
        self.refresh.start()

    def read(self, place: str) -> None:
        """Open a decision of the page that is shown, or of one that was shown lately."""
        record = self.records.get(place)
        if record is not None:
            self.opened = record
            self.table.mark(place)
            self._read[:] = [show_record(record)]
            if self._has_contexts:
                self._read.append(self._reviews.offer(self._evaluation.id, record.row))
            self._session.selected = [record.row]

    def on_key(self, action: str) -> bool:
        """Go through the decisions with the keys of a review."""
        return self.table.on_key(action)

    def _make_fields(self) -> None:
        wide: dict[str, Any] = {"width": 190, "size": "small"}
        names = [decision.decision_id for decision in self._detail.decisions]
        self.decision = pmui.Select(
            label="Decision", options={"Any": _ANY} | {name: name for name in names}, **wide
        )
        self._target = pmui.Select(label="Right answer", options={"Any": _ANY}, **wide)
        self._top = pmui.Select(label="Answered", options={"Any": _ANY}, **wide)
        self._bin = pmui.Select(label="Top probability", options={"Any": _ANY}, **wide)
        slices = {"Any": _ANY} | {
            f"{table.by} = {slice_.value}": json.dumps([table.by, slice_.value])
            for table in self._detail.slices
            for slice_ in table.slices
        }
        self._slice = pmui.Select(label="Slice", options=slices, width=240, size="small")
        self._order = pmui.Select(label="Order", options=ORDERS, **wide)
        self.wrong = pmui.Switch(label="Only wrong answers")
        self._clear = action_button(
            "Clear filter", lambda _: self.choose(RecordChoice()), size="small"
        )

    def _fill_fields(self) -> None:
        """Put the selection into the fields, without taking that for a person's choice."""
        chosen = self.chosen
        outcomes = {"Any": _ANY} | {name: name for name in self._outcomes(chosen.decision)}
        for name in (chosen.target, chosen.top):
            if name:
                outcomes.setdefault(name, name)
        bins = {"Any": _ANY} | self._bins()
        range_ = _range_text(chosen)
        if range_ and range_ not in bins.values():
            ends = [f"above {chosen.p_from:g}"] if chosen.p_from is not None else []
            ends += [f"up to {chosen.p_to:g}"] if chosen.p_to is not None else []
            bins[" and ".join(ends)] = range_
        self._is_filling = True
        try:
            self.decision.value = chosen.decision
            self._target.param.update(options=outcomes, value=chosen.target)
            self._top.param.update(options=outcomes, value=chosen.top)
            self._bin.param.update(options=bins, value=range_)
            slice_json = json.dumps([chosen.slice_by, chosen.slice]) if chosen.slice_by else _ANY
            if slice_json not in self._slice.options.values():
                name = f"{chosen.slice_by} = {chosen.slice}"
                self._slice.options = {**self._slice.options, name: slice_json}
            self._slice.value = slice_json
            self._order.value = chosen.order
            self.wrong.value = chosen.wrong
            self._clear.disabled = chosen.is_all
        finally:
            self._is_filling = False

    def _bins(self) -> dict[str, str]:
        rows = self._detail.reliability
        if not isinstance(rows, list):
            return {
                f"{low / 10:.1f} to {low / 10 + 0.1:.1f}": json.dumps([low / 10, (low + 1) / 10])
                for low in range(10)
            }
        return {bin_name(row): json.dumps([row.low, row.high]) for row in rows if row.n}

    def _outcomes(self, decision_id: str) -> list[str]:
        """Return the outcomes that a decision, or any of them, may have."""
        outcomes: dict[str, None] = {}
        for decision in self._detail.decisions:
            matrix = decision.confusion
            if decision_id in ("", decision.decision_id) and isinstance(matrix, ConfusionMatrix):
                outcomes.update(dict.fromkeys(matrix.outcomes))
        return list(outcomes)

    @param.depends(
        "decision.value",
        "_target.value",
        "_top.value",
        "_bin.value",
        "_slice.value",
        "_order.value",
        "wrong.value",
        watch=True,
    )
    def _on_field(self) -> None:
        if self._is_filling:
            return
        low, high = json.loads(self._bin.value) if self._bin.value else (None, None)
        by, of = json.loads(self._slice.value) if self._slice.value else ("", "")
        decision = self.decision.value
        known = self._outcomes(decision) if decision != self.chosen.decision else None
        self.chosen = RecordChoice(
            decision=decision,
            wrong=self.wrong.value,
            target=_kept(self._target.value, known),
            top=_kept(self._top.value, known),
            p_from=low,
            p_to=high,
            slice_by=by,
            slice=of,
            order=_order(self._order.value),
        )
        self._session.query = query_of(self.chosen)
        self.refresh.start()

    def _fetch(self, request: PageRequest) -> TablePage:
        """Return a page; without contexts where the dataset is gone."""
        ask = self.client.evaluations.records_page
        filters = self.chosen.client_filters()
        filters["context"] = True
        try:
            page = ask(self._evaluation.id, offset=request.offset, limit=request.limit, **filters)
            self._has_contexts = True
        except DatasetDeletedError:
            filters["context"] = False
            page = ask(self._evaluation.id, offset=request.offset, limit=request.limit, **filters)
            self._has_contexts = False
        self._keep(page.data)
        rows = [_table_row(record) for record in page.data]
        return TablePage(pl.DataFrame(rows, schema=_NAMES, orient="row"), page.total)

    def _keep(self, records: Sequence[EvaluationRecord]) -> None:
        """Keep records, and drop the oldest."""
        new = {_place(record): record for record in records}
        with self._keeping:
            remaining = {
                place: record for place, record in self.records.items() if place not in new
            }
            n_over = len(remaining) + len(new) - _MOST_RECORDS
            self.records = dict(islice(remaining.items(), max(0, n_over), None)) | new

    def _tell(self) -> None:
        words = self.chosen.words()
        n = self.table.total
        of = f"{n:,} of {self._detail.overall.n:,} scored decisions"
        text = f"{of}: {words}." if words else f"All {n:,} scored decisions."
        self._said.object = f'<p role="status" style="margin:0.3em 0">{escape(text)}</p>'
        notes: list[Viewable] = []
        if not self._has_contexts:
            notes.append(empty("The dataset was deleted, so the texts of these rows are gone."))
        if n == 0 and words:
            clear = action_button(
                "Clear the filter", lambda _: self.choose(RecordChoice()), variant="contained"
            )
            notes.append(
                empty(
                    f"No scored decision matches: *{escape_markdown(words)}*.",
                    clear,
                    is_good=self.chosen.wrong,
                )
            )
        self._notes[:] = notes
        self._table_box.visible = n > 0

    def _close(self) -> None:
        self.opened = None
        self.table.mark(None)
        self._read[:] = []
        self._session.selected = []


def show_record(record: EvaluationRecord) -> Viewable:
    """Show one scored decision: its context, and the probability of each outcome."""
    right = right_outcomes(record)
    names = sorted(record.probabilities, key=lambda name: -record.probabilities[name])
    outcomes = names[:20] + [name for name in right if name not in names[:20]]
    chart = figures.bars(
        [f"{name} (right)" if name in right else name for name in outcomes],
        [record.probabilities[name] for name in outcomes],
        title=f"{record.decision_id}: {names[0]} answered, {' or '.join(right)} right",
        x="probability",
    )
    measures = [
        f"{TITLES[name]} {value:.3f}"
        for name in ("loss", "brier", "expected_reward", "scaled_reward")
        if isinstance(value := getattr(record, name), float)
    ]
    return stack(
        heading(f"Row {record.row:,}", level=3),
        show_text(context_text(record), f"Text of row {record.row:,}"),
        figures.show(chart),
        small_text(f"{', '.join(measures)}. Text {record.context_sha256[:12]}…"),
    )


def show_text(text: str, label: str) -> Viewable:
    """Show a text as it is, to be scrolled with the keys."""
    return html_pane(
        f'<pre tabindex="0" role="region" aria-label="{escape(label)}" style="{_PRE}">'
        f"{escape(text)}</pre>"
    )


def _table_row(record: EvaluationRecord) -> tuple[Any, ...]:
    top = max(record.probabilities, key=record.probabilities.__getitem__)
    measure = record.loss if isinstance(record.loss, float) else record.scaled_reward
    return (
        _place(record),
        record.row,
        record.decision_id,
        " or ".join(right_outcomes(record)),
        top,
        f"{record.probabilities[top]:.3f}",
        f"{measure:.3f}" if isinstance(measure, float) else "—",
        cut(" ".join(context_text(record).split()), _SHORT),
    )


def _place(record: EvaluationRecord | None) -> str:
    return "" if record is None else f"{record.row} {record.decision_id}"


def _range_text(choice: RecordChoice) -> str:
    if choice.p_from is None and choice.p_to is None:
        return _ANY
    return json.dumps([choice.p_from, choice.p_to])


def _kept(outcome: str, outcomes: list[str] | None) -> str:
    return outcome if outcomes is None or outcome in outcomes else _ANY


def _order(value: str) -> RecordOrder:
    return next(order for order in get_args(RecordOrder) if order == value)
