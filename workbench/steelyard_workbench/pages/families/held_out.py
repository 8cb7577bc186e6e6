"""The held-out decisions behind a gate: each as the two models answered it, with its context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import panel as pn
import panel_material_ui as pmui
import polars as pl
from msgspec import UNSET

from steelyard.client import Client
from steelyard.errors import SteelyardError
from steelyard.evaluations.wire import Evaluation, EvaluationRecord, JobRecord, RecordGroup
from steelyard.families.fine_tune_wire import Job
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.frame_table import FrameTable, PageRequest, TablePage
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.views import empty, facts, heading
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.pages.families.gate_card import HeldOutRequest
from steelyard_workbench.parts.datasets.questions import as_text, top_of
from steelyard_workbench.parts.review.sending import RowReview

#: The most characters of a context in the table; the row below it has all.
_SHOWN_CHARACTERS = 160
_PAGE = 10
_FLIPS = {
    "broken by the new model": "broken",
    "fixed by the new model": "fixed",
    "right in both": "same right",
    "wrong in both": "same wrong",
}
_GROUPS = {"new rows": "new", "earlier rows": "earlier"}
_ALL = "all"
_SCHEMA = {
    "row": pl.Int64,
    "context_sha256": pl.String,
    "group": pl.String,
    "decision": pl.String,
    "right": pl.String,
    "before": pl.String,
    "after": pl.String,
    "change": pl.Float64,
    "flip": pl.String,
}
_COLUMNS = {
    "row": ("#", 60),
    "context": ("text", 235),
    "decision": ("decision", 95),
    "right": ("right", 100),
    "before": ("before", 160),
    "after": ("after", 160),
    "change": ("change", 90),
    "flip": ("flip", 100),
}


class HeldOutRows(Boxed):
    """The held-out decisions of a fine-tune, compared with answers of its parent or base (``against``)."""

    def __init__(
        self,
        client: Client,
        job: Job,
        against: RecordGroup,
        earlier_job: str | None,
        request: HeldOutRequest,
        reviews: RowReview,
    ) -> None:
        super().__init__()
        self._client, self._reviews = client, reviews
        self._job, self._against, self._earlier_job = job, against, earlier_job
        self._frame: pl.DataFrame | None = None
        self._contexts: dict[str, str] = {}
        # By context and decision: the place of the row among the evaluation rows.
        self._places: dict[tuple[str, str], int] = {}
        self.filters = {
            "group": _select("Rows", {_ALL: "", **_GROUPS}, request.group),
            "flip": _select("Right or wrong", {_ALL: "", **_FLIPS}, request.flip),
            "decision": _select("Decision", {_ALL: ""}, request.decision),
            "right": _select("Right answer", {_ALL: ""}, request.outcome),
        }
        pn.bind(lambda *_: schedule(self.start), *self.filters.values(), watch=True)
        self.number = pmui.TextInput(label="Row number", width=130)
        pn.bind(self._on_number, self.number, watch=True)
        self.table = FrameTable(
            self._page,
            what="The rows for the check",
            id_column="row",
            columns=_COLUMNS,
            sortable=("row", "decision", "right", "change", "flip"),
            page_size=_PAGE,
            wrapped=("context",),
            on_open=lambda row: self.show_row(row["row"]),
        )
        self.none, self.row = stack(), stack()
        self._box = stack(
            heading("Rows for the check", level=3),
            pmui.Row(*self.filters.values(), self.number),
            self.none,
            self.table,
            self.row,
        )

    def on_key(self, action: str) -> bool:
        """Go into the rows by keys; return whether there was a use for one."""
        return self.table.on_key(action)

    async def start(self) -> None:
        """Fetch and show the rows."""
        await self.table.restart()
        self._after()

    def show_row(self, number: int) -> None:
        """Show a row in full."""
        if self._frame is None:
            return
        matches = self._frame.filter(pl.col("row") == number)
        if not matches.height:
            self.table.mark(None)
            self.row[:] = [empty(f"There is no row for the check {number}.")]
            return
        row = matches.row(0, named=True)
        values = {
            "Text": self._context_of(row["context_sha256"]),
            "Decision": row["decision"],
            "Right": row["right"],
            "Before": row["before"],
            "After": row["after"],
            f"Change of {self._measure}": f"{row['change']:+.4f}",
        }
        self.table.mark(number)
        self.row[:] = [facts(values)]
        place = self._places.get((row["context_sha256"], row["decision"]))
        evaluation = self._job.dataset_evaluation
        if place is not None and isinstance(evaluation, Evaluation):
            self.row.append(self._reviews.offer(evaluation.id, place))

    @property
    def frame(self) -> pl.DataFrame:
        """The rows that the filters leave, worst first."""
        frame = pl.DataFrame(schema=_SCHEMA) if self._frame is None else self._frame
        for column, field in self.filters.items():
            if field.value:
                frame = frame.filter(pl.col(column) == field.value)
        return frame

    @property
    def _measure(self) -> str:
        return "loss" if self._job.method == "sft" else "scaled reward"

    def _page(self, request: PageRequest) -> TablePage:
        if self._frame is None:
            self._frame = self._fetch()
        frame = self.frame
        for column, falls in reversed(request.sort):
            frame = frame.sort(column, descending=falls, maintain_order=True)
        page = frame.slice(request.offset, request.limit)
        self._fetch_contexts(page["context_sha256"].unique().to_list())
        texts = [
            self._context_of(name)[:_SHOWN_CHARACTERS] for name in page["context_sha256"].to_list()
        ]
        return TablePage(page.with_columns(pl.Series("context", texts, pl.String)), frame.height)

    def _fetch(self) -> pl.DataFrame:
        after = self._client.jobs.records(self._job.id)
        before = self._client.jobs.records(self._job.id, group=self._against)
        earlier: set[tuple[Any, ...]] = set()
        if self._earlier_job is not None:
            # Where its rows are gone, new and earlier cannot be told apart.
            with suppress(SteelyardError):
                earlier = set(map(judged_as, self._client.jobs.records(self._earlier_job)))
        if self._job.gate is not None and self._job.gate.judged_on == "all":
            earlier = set(map(judged_as, after))
        return pair_records(before, after, earlier)

    def _fetch_contexts(self, names: list[str]) -> None:
        """Ask for the contexts of a page; where they are not available, rows are shown without."""
        missing = [name for name in names if name not in self._contexts]
        evaluation = self._job.dataset_evaluation
        if not missing or not isinstance(evaluation, Evaluation):
            return
        try:
            evaluated = self._client.evaluations.records(
                evaluation.id, contexts=missing, context=True
            )
        except SteelyardError:
            return
        for record in cast("Sequence[EvaluationRecord]", evaluated):
            if record.context is not UNSET:
                self._contexts[record.context_sha256] = as_text(record.context)
                self._places[record.context_sha256, record.decision_id] = record.row

    def _context_of(self, name: str) -> str:
        return self._contexts.get(name, "(not available)")

    def _on_number(self, text: str) -> None:
        if text.strip().isdecimal():
            self.show_row(int(text))

    def _after(self) -> None:
        """Offer the values of the rows, and say so when the filters leave none."""
        if self._frame is None:
            return
        for column in ("decision", "right"):
            names = self._frame[column].unique().sort().to_list()
            field = self.filters[column]
            options = {_ALL: "", **{name: name for name in names}}
            if field.options != options:
                field.options = options
        self.none[:] = []
        if not self.frame.height:
            fields = [
                f"*{field.label.lower()}* is {escape_markdown(field.value)}"
                for field in self.filters.values()
                if field.value
            ]
            clear = action_button("Clear the filter", lambda _: self._clear(), variant="contained")
            text = f"0 of {self._frame.height:,} rows: {' and '.join(fields)}."
            self.none[:] = [empty(text, clear)]

    def _clear(self) -> None:
        for field in self.filters.values():
            field.value = ""


def judged_as(record: JobRecord) -> tuple[Any, ...]:
    """Return the key of a decision that was judged before: a new label makes it new."""
    return (
        record.context_sha256,
        record.decision_id,
        frozenset(record.probabilities),
        right_outcome(record),
    )


def pair_records(
    before: list[JobRecord], after: list[JobRecord], earlier: set[tuple[Any, ...]]
) -> pl.DataFrame:
    """Put two models' records of the same decisions side by side, the worst change first.

    They are in the same order, as a server gives them. ``earlier`` has the contexts, decisions and
    right outcomes that earlier models were judged on.
    """
    rows = []
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        right = right_outcome(new)
        ends = (is_right(old), is_right(new))
        rows.append(
            {
                "row": number,
                "context_sha256": new.context_sha256,
                "group": "earlier" if judged_as(new) in earlier else "new",
                "decision": new.decision_id,
                "right": right,
                "before": _answer(old.probabilities),
                "after": _answer(new.probabilities),
                "change": _figure(new) - _figure(old),
                "flip": {
                    (True, True): "same right",
                    (True, False): "broken",
                    (False, True): "fixed",
                    (False, False): "same wrong",
                }[ends],
            }
        )
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    is_loss = not after or after[0].loss is not UNSET
    return frame.sort("change", descending=is_loss, maintain_order=True)


def _select(label: str, options: Mapping[str, str], value: str) -> Any:
    names = dict(options)
    if value not in names.values():
        names[value] = value
    return pmui.Select(label=label, options=names, value=value, width=200)


def right_outcome(record: JobRecord) -> str:
    """Return the outcome that a row says is right."""
    for labels in (record.targets, record.rewards):
        if isinstance(labels, dict):
            return top_of(labels)
    return "—"


def is_right(record: JobRecord) -> bool:
    """Whether a model answered as the row says."""
    for mark in (record.accuracy, record.picked_best):
        if isinstance(mark, float):
            return mark >= 1.0
    # Every outcome earns the same: none is wrong.
    return True


def _figure(record: JobRecord) -> float:
    for figure in (record.loss, record.scaled_reward):
        if isinstance(figure, float):
            return figure
    return 0.0


def _answer(probabilities: Mapping[str, float]) -> str:
    top = top_of(probabilities)
    return f"{top} ({probabilities[top]:.3f})"
