"""Side views of rows: their spread, the rows most like one, and their editors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from msgspec import UNSET
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.datasets.searches import FoundSimilar
from steelyard.datasets.wire import Example
from steelyard.errors import RowsLabelledApartError
from steelyard.review.wire import Draft, DraftRow, History, LogEntry
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.bar_list import BarList
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.views import empty, heading, table
from steelyard_workbench.kit.words import ago, cut, escape_markdown
from steelyard_workbench.pages.review.apart import is_apart
from steelyard_workbench.pages.review.reviewers import Reviewers
from steelyard_workbench.pages.review.suggesting import Suggesting
from steelyard_workbench.parts.datasets.overview import count_chart
from steelyard_workbench.parts.datasets.questions import as_text, labels_text
from steelyard_workbench.parts.review.row_filter import SIDES, OnFilter, RowFilter

#: Similar rows that are shown, and entries of a history.
N_SIMILAR, N_ENTRIES = 8, 20
_SNIPPET = 220
_FACETS, _SIMILAR, _HISTORY, _SUGGEST = "Groups", "Similar", "History", "Suggest"
_REVIEWERS = "Reviewers"
#: Decisions to present names to the outcomes of the version that are under each.
Members = dict[str, dict[str, list[str]]]


class Beside(Boxed):
    """The panel beside the rows; ``on_outcomes`` gets each decision's outcomes once they are counted."""

    def __init__(
        self,
        client: Client,
        draft: Draft,
        *,
        on_filter: OnFilter,
        on_row: Callable[[int], None],
        on_outcomes: Callable[[Members], None],
        suggesting: Suggesting,
        reviewers: Reviewers,
        may_ask: bool,
    ) -> None:
        self._client, self._draft = client, draft
        self._on_filter, self._on_row, self._on_outcomes = on_filter, on_row, on_outcomes
        self._suggesting, self._reviewers = suggesting, reviewers
        self._filter = RowFilter()
        self._row: DraftRow | None = None
        self._facets = Loaded("The counts", self._fetch_facets, self._show_facets)
        self._similar = Loaded("Similar rows", self._fetch_similar, self._show_similar)
        self._of_row = Loaded("The row's history", self._fetch_row, show_history, n_lines=2)
        self._of_draft = Loaded(
            "The review's history",
            lambda: client.drafts.history(draft.id, limit=N_ENTRIES),
            show_history,
        )
        self.choice = pmui.RadioButtonGroup(
            options=[
                _FACETS,
                _SIMILAR,
                _HISTORY,
                *([_SUGGEST] if may_ask else []),  # who reviews alone may ask no model
                _REVIEWERS,
            ],
            value=_FACETS,
            size="small",
            label="Beside the rows",
        )
        super().__init__()
        self._place = stack(self._facets)
        self._box = pn.Column(self.choice, self._place, width=360)

    @property
    def parts(self) -> list[Loaded[Any]]:
        """The fetches of the present view."""
        parts_of: dict[str, list[Loaded[Any]]] = {
            _FACETS: [self._facets],
            _SIMILAR: [self._similar],
            _HISTORY: [self._of_row, self._of_draft],
            _SUGGEST: [self._suggesting.part],
            _REVIEWERS: [self._reviewers.part],
        }
        return parts_of[self.choice.value]

    def show_similar(self) -> None:
        """Show the rows most like the one in focus."""
        if self.choice.value == _SIMILAR:
            self._turn()
        else:
            self.choice.value = _SIMILAR

    def filtered(self, row_filter: RowFilter) -> None:
        """Count the rows of another filter."""
        self._filter = row_filter
        self._facets.start()

    def row_changed(self, row: DraftRow | None) -> None:
        """Note which row is in focus."""
        is_other = (self._row and self._row.row) != (row and row.row)
        self._row = row
        if is_other and self.choice.value == _SIMILAR:
            self._similar.start()
        if is_other and self.choice.value == _HISTORY:
            self._of_row.start()

    def outcomes_changed(self) -> None:
        """Count the rows under the names that outcomes have now."""
        self._facets.refresh.start(quietly=True)

    def sealed(self, draft: Draft) -> None:
        """Count the rows of the sealed dataset."""
        self._draft = draft
        self.outcomes_changed()

    def edited(self) -> None:
        """Note that the log is longer."""
        if self.choice.value == _HISTORY:
            self._of_row.start()
            self._of_draft.start()
        elif self.choice.value == _REVIEWERS:
            self._reviewers.part.refresh.start(quietly=True)

    @param.depends("choice.value", watch=True)
    def _turn(self) -> None:
        if self.choice.value == _HISTORY:
            self._place[:] = [
                heading("This row"),
                self._of_row,
                heading("The whole review"),
                self._of_draft,
            ]
        else:
            self._place[:] = list(self.parts)
        for part in self.parts:
            # The models that are shown already stay, with their choice.
            if self.choice.value != _SUGGEST or part.state != "shown":
                part.start()

    @property
    def _counted(self) -> tuple[str, int]:
        """The dataset and version that is counted: the draft's origin, or its sealed one."""
        draft, sealed = self._draft, self._draft.sealed
        if sealed is None:
            return draft.dataset_id, draft.dataset_version
        return sealed.dataset_id, sealed.version

    def _fetch_facets(self) -> tuple[dict[str, Any] | RowsLabelledApartError, Members]:
        members: Members = {}
        for decision in self._client.drafts.outcomes(self._draft.id).data:
            names = members.setdefault(decision.decision, {})
            for outcome in decision.outcomes:
                names.setdefault(outcome.name, []).append(outcome.outcome)
        dataset_id, version = self._counted
        try:
            matches = self._client.datasets.search(
                dataset_id,
                where=self._filter.where,
                text=self._filter.text,
                facets=True,
                version=version,
                limit=1,
            )
        except RowsLabelledApartError as refused:
            return refused, members
        return dict(matches.facets or {}), members

    def _show_facets(
        self, counted: tuple[dict[str, Any] | RowsLabelledApartError, Members]
    ) -> Viewable:
        facets, members = counted
        self._on_outcomes(members)
        if isinstance(facets, RowsLabelledApartError):
            return empty(facets.message)
        expected = {
            decision: _count_by_name(counts, members.get(decision, {}))
            for decision, counts in facets.get("expected", {}).items()
        }
        if not facets.get("rows"):
            return empty("No rows match, so there is nothing to count.")
        charts = [count_chart(decision, counts) for decision, counts in expected.items()]
        sides: dict[str, int] = facets.get("sides", {})
        charts.append(count_chart("for", {SIDES[side]: n for side, n in sides.items()}))

        def open_(chart: int, bar: int) -> None:
            name = charts[chart]["bars"][bar]["name"]
            if chart == len(expected):
                side = next(side for side in sides if SIDES[side] == name)
                self._on_filter(replace(self._filter, side=side))
                return
            decision = list(expected)[chart]
            outcomes = members.get(decision, {}).get(name, [name])
            self._on_filter(self._filter.with_expected(decision, *outcomes))

        return stack(
            small_text(f"Labels in version {self._counted[1]}. Click a bar for its rows."),
            BarList(charts, open_),
        )

    def _fetch_similar(self) -> FoundSimilar | None:
        if self._row is None or is_apart(self._row):
            return None
        return self._client.datasets.similar(
            self._draft.dataset_id,
            row=self._row.row,
            version=self._draft.dataset_version,
            limit=N_SIMILAR,
        )

    def _show_similar(self, similar: FoundSimilar | None) -> Viewable:
        if self._row is not None and is_apart(self._row):
            return empty("Similar rows have labels: they are shown once all have answered.")
        if similar is None or not similar.data:
            return empty("There is no row to compare, or no other that is like it.")
        views: list[Viewable] = [small_text(text) for text in agreement(similar, self._row)]
        for row in similar.data:
            snippet = cut(as_text(row.row.context), _SNIPPET)
            button = action_button(
                f"Open row {row.index}",
                lambda _, index=row.index: self._on_row(index),
                variant="text",
                size="small",
            )
            views.append(
                stack(
                    table(
                        (f"similarity {row.similarity:.2f}",),
                        [(labels_text(_labels(row.row)),), (snippet,)],
                        label=f"Row {row.index}",
                    ),
                    button,
                )
            )
        return stack(*views)

    def _fetch_row(self) -> History | None:
        if self._row is None or not self._row.now.edit:
            return None
        return self._client.drafts.history(self._draft.id, row=self._row.row, limit=N_ENTRIES)


def agreement(similar: FoundSimilar, row: DraftRow | None) -> list[str]:
    """Return in words the labels of similar rows for each decision, as ``4 of 5 neighbours say …``."""
    votes: dict[str, Counter[str]] = {}
    for near in similar.data:
        for decision, label in _labels(near.row).items():
            if label:
                top = max(label, key=lambda outcome: label[outcome])
                votes.setdefault(decision, Counter())[top] += 1
    decision_ids = set(row.now.labels) if row is not None else set(votes)
    lines = []
    for decision, counted in votes.items():
        if decision in decision_ids:
            outcome, n = counted.most_common(1)[0]
            answer = escape_markdown(f"{decision}: {outcome}")
            lines.append(f"{n} of {counted.total()} neighbours say **{answer}**")
    return lines


def show_history(history: History | None) -> Viewable:
    """Show entries of a log, newest first."""
    if history is None or not history.data:
        return empty("No edits yet.")
    return table(
        ("what", "who", "when"),
        [(entry_text(entry), entry.reviewer or "unnamed", ago(entry.at)) for entry in history.data],
        label="Edits, newest first",
    )


def entry_text(entry: LogEntry) -> str:
    """Return an entry of the log in words."""
    if entry.action in ("undo", "redo"):
        return f"{entry.action} of entry {entry.target}"
    of = f"row {entry.row}" if entry.row is not None else f"{entry.rows:,} rows"
    text = f"{entry.action} {of}"
    if entry.action == "outcomes":
        text = f"answers or guideline of {entry.decision}"
    elif entry.decision is not None:
        text += f": {entry.decision} is {entry.outcome}"
    if entry.note:
        text += f" (note: {entry.note})"
    return f"{text} [undone]" if entry.is_undone else text


def _labels(row: Example) -> dict[str, dict[str, float]]:
    label = row.rewards if row.targets is UNSET else row.targets
    return {} if label is UNSET else label


def _count_by_name(
    counts: Mapping[str, int], members: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """Return the rows under each present name."""
    by_name = Counter(
        {
            name: sum(counts.get(outcome, 0) for outcome in outcomes)
            for name, outcomes in members.items()
        }
    )
    unnamed = set(counts) - {outcome for outcomes in members.values() for outcome in outcomes}
    by_name.update({outcome: counts[outcome] for outcome in unnamed})
    return dict(+by_name)
