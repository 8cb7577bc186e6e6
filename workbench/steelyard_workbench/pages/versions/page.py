"""Versions: how a dataset grew, the differences between two of its versions, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.models import ColumnDataSource
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset, DatasetVersion
from steelyard.errors import KeyScopeError
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.bar_list import Bar, BarChart, BarList
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.frame_table import PageRequest, TablePage
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.theme import BLUE, ORANGE
from steelyard_workbench.kit.views import empty, facts, heading, table, verdict
from steelyard_workbench.kit.words import ago, escape_markdown
from steelyard_workbench.pages.evaluations.page import dataset_select
from steelyard_workbench.pages.versions.changes import RowChanges, Transition, fetch_changes
from steelyard_workbench.parts.datasets.files import export_dialog
from steelyard_workbench.parts.datasets.names import no_datasets
from steelyard_workbench.parts.datasets.next_steps import next_steps
from steelyard_workbench.parts.datasets.overview import section, when
from steelyard_workbench.parts.datasets.row_pages import listed_page, search_page
from steelyard_workbench.parts.datasets.row_table import RowTable

#: Datasets that are offered, and transitions that have a button.
_MOST_DATASETS, MOST_TRANSITIONS = 200, 40
_ADDED, _REMOVED = "added", "removed"
#: A review adds its relabelled rows, and removes these as they were, and others.
_OF_REVIEW = {_ADDED: "Rows relabelled", _REMOVED: "Rows excluded, or relabelled as they were"}
_VIA = {"api": "the API", "jsonl": "JSON Lines", "csv": "CSV", "labeling": "labeling"}
#: Versions that are drawn, the newest.
MOST_VERSIONS = 30
#: Pixels of a cell, and the colours of the emptiest and the fullest one, as red, green and blue.
_CELL = 46
_PALE, _FULL = (0xDC, 0xEF, 0xFB), (0x56, 0xB4, 0xE9)


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """A dataset and its versions, newest first, with the names of the reviews sealed as one."""

    dataset: Dataset
    versions: list[DatasetVersion]
    reviews: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes of the ``newer`` version since the ``older``, which is 0 when there is none.

    ``diff`` is as ``client.datasets.diff`` gives it; empty when there is no older one.
    ``is_review``: whether the newer one is the older one as a review left it.
    """

    versions: list[DatasetVersion]
    newer: int
    older: int
    diff: Mapping[str, Any]
    is_review: bool = False


class VersionsPage(Page):
    """The versions of the chosen dataset, or of the newest one that has two."""

    slug = "versions"
    title = "Versions"
    summary = "Every version stays as it is; what differs between two of them is below."
    watched = ("dataset", "version")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.shown: tuple[str, int] = ("", 0)
        self._dataset_id = ""
        self.newer = self.older = 0
        self.rows: RowTable | None = None
        self.history: Loaded[VersionHistory] | None = None
        self.difference: Loaded[Difference] | None = None
        self.which: str | Transition = _ADDED
        self._first = 0
        self._changes: dict[tuple[int, int], RowChanges] = {}
        self.shown_text = empty("")

    def open(self) -> None:
        """Show the page."""
        self.rows = self.history = self.difference = None
        self.newer = self.older = 0
        self._changes.clear()
        chosen = (self.session.dataset, self.session.version)
        if self.shown[0] and chosen != self.shown:
            self.session.against = 0  # that was chosen for another version
        self.shown, self._dataset_id = chosen, chosen[0]
        super().open()

    def build(self) -> list[Viewable]:
        """Return the parts of the chosen dataset, or of the newest beside the choice of another."""
        if not self._dataset_id:
            fetch = self.client.datasets.list
            datasets = Loaded(
                "The datasets",
                lambda: list(fetch(limit=_MOST_DATASETS).data),
                self._show_newest,
                n_lines=6,
            )
            return [self.part(datasets)]
        return self._parts()

    def _parts(self) -> list[Viewable]:
        self.history = Loaded("The versions", self._fetch, self._show, n_lines=6)
        self.difference = Loaded("The difference", self._diff, self._show_difference)
        return [self.part(self.history), self.part(self.difference)]

    def on_key(self, action: str, _: int) -> bool:
        """Go from row to row."""
        return self.rows is not None and self.rows.on_key(action)

    def choose_rows(self, which: str | Transition) -> None:
        """Show the rows added, those removed, or those that made a transition."""
        self._tell(which)
        if self.rows is not None:
            self.rows.reload()

    # A dataset

    async def _show_newest(self, datasets: list[Dataset]) -> Viewable:
        if not datasets:
            text = "Every import and every finished review makes a version."
            return no_datasets(self.session, text)
        newest = next((dataset for dataset in datasets if dataset.version > 1), datasets[0])
        self._dataset_id = newest.id
        view = stack(dataset_select(self.session, datasets, newest.id), *self._parts())
        for part in (self.history, self.difference):
            if part is not None:
                await part.refresh()
        return view

    # Its versions

    def _fetch(self) -> VersionHistory:
        dataset_id = self._dataset_id
        return VersionHistory(
            self.client.datasets.get(dataset_id),
            self.client.datasets.versions(dataset_id).data,
            self._reviews(dataset_id),
        )

    def _reviews(self, dataset_id: str) -> dict[int, str]:
        """Return the names of reviews by the versions they became; none where they may not be read."""
        try:
            drafts = self.client.drafts.list(status="sealed").data
        except KeyScopeError:
            return {}
        sealed = [(draft.sealed, draft.name) for draft in drafts if draft.sealed is not None]
        return {
            version.version: name for version, name in sealed if version.dataset_id == dataset_id
        }

    def _show(self, history: VersionHistory) -> Viewable:
        dataset, versions = history.dataset, history.versions
        version, _ = self._pick(versions)
        newer = pmui.Select(label="Version", options=_names(versions), value=version, width=300)
        pn.bind(self.choose_version, newer, watch=True)
        export = export_dialog(self.client, dataset, version)
        steps = [
            *next_steps(self.session, dataset, version, "this version"),
            Choice("Export…", export.open, look="outlined"),
        ]
        return stack(
            newer,
            Choices(steps, layout="row"),
            export,
            section("All versions", _show_versions(versions, history.reviews)),
            draw_sides(versions, self.choose_version),
        )

    # What a version changed

    def _diff(self) -> Difference:
        versions = self.client.datasets.versions(self._dataset_id).data
        newer, older = self._pick(versions)
        if not older:
            return Difference(versions, newer, 0, {})
        diff = self.client.datasets.diff(self._dataset_id, older, newer)
        is_next = older == max(other.version for other in versions if other.version < newer)
        is_review = is_next and newer in self._reviews(self._dataset_id)
        return Difference(versions, newer, older, diff, is_review)

    def _show_difference(self, difference: Difference) -> Viewable:
        self.newer, self.older = difference.newer, difference.older
        self.rows = RowTable(self._row_page, what="The rows", page_size=15)
        title = f"What version {difference.newer} changed"
        if not difference.older:
            self._first = 0
            rows = next(
                version.rows
                for version in difference.versions
                if version.version == difference.newer
            )
            first = empty(
                f"Version {difference.newer} is the first: all of its {rows:,} rows are new. Add rows "
                "to the dataset, or finish a review of it, and what changed is shown here."
            )
            return section(title, first, *self._show_rows({"rows": rows, "removed": 0}))
        against = pmui.Select(
            label="Compared with",
            options=_names(
                [version for version in difference.versions if version.version < difference.newer]
            ),
            value=difference.older,
            width=300,
        )
        pn.bind(self.choose_older, against, watch=True)
        diff = difference.diff
        self._first = diff["first"] or 0
        if not diff["rows"] and not diff.get("removed", 0):
            self.rows = None
            return section(title, against, empty("The two versions have the same rows."))
        return section(
            title,
            against,
            facts(_difference_facts(diff, is_review=difference.is_review)),
            *self._show_transitions(diff["relabelled"]),
            *self._show_rows(diff, is_review=difference.is_review),
        )

    def _show_transitions(self, relabelled: Sequence[Mapping[str, Any]]) -> list[Viewable]:
        if not relabelled:
            return [verdict("off", "No labels changed.", "No text got another right answer.")]
        counts = {
            Transition(change["decision"], change["before"], change["after"]): change["contexts"]
            for change in relabelled
        }
        charts = [
            pn.Column(figures.show(draw_transitions(decision, counts, self.choose_rows)), width=470)
            for decision in dict.fromkeys(transition.decision for transition in counts)
        ]
        transitions = [
            Choice(
                f"{transition.decision}: {transition.before} → {transition.after} ({n:,})",
                partial(self.choose_rows, transition),
                look="outlined",
            )
            for transition, n in list(counts.items())[:MOST_TRANSITIONS]
        ]
        return [
            heading("Labels that changed", 3),
            pn.FlexBox(*charts),
            small_text("The rows of a change:"),
            Choices(transitions, layout="row", is_small=True),
        ]

    # The rows of it

    def _show_rows(self, diff: Mapping[str, Any], *, is_review: bool = False) -> list[Viewable]:
        counts = {_ADDED: diff["rows"], _REMOVED: diff.get("removed", 0)}
        names = _OF_REVIEW if is_review else {}
        sides = [
            Choice(
                f"{names.get(which, f'Rows {which}')} ({n:,})",
                partial(self.choose_rows, which) if n else None,
                look="outlined",
            )
            for which, n in counts.items()
        ]
        self._tell(_ADDED if counts[_ADDED] else _REMOVED)
        if self.rows is None:
            return []
        self.rows.reload()
        return [
            heading("Rows", 3),
            Choices(sides, layout="row", is_small=True),
            self.shown_text,
            self.rows,
        ]

    def _row_page(self, request: PageRequest) -> TablePage:
        dataset_id, which = self._dataset_id, self.which
        if which == _ADDED:
            where = {"type": "index", "at_least": self._first} if self._first else None
            return search_page(self.client, dataset_id, request, version=self.newer, where=where)
        changes = self._find_changes()
        if isinstance(which, Transition):
            indexes, version = changes.relabelled.get(which, []), self.newer
        else:
            indexes, version = changes.removed, self.older
        return listed_page(self.client, dataset_id, request, version=version, indexes=indexes)

    def _find_changes(self) -> RowChanges:
        """Return which rows changed, fetched once."""
        pair = (self.older, self.newer)
        if pair not in self._changes:
            self._changes[pair] = fetch_changes(self.client, self._dataset_id, *pair)
        return self._changes[pair]

    def _tell(self, which: str | Transition) -> None:
        self.which = which
        if isinstance(which, Transition):
            decision, before, after = map(
                escape_markdown, (which.decision, which.before, which.after)
            )
            description = f"{decision}: rows that expect **{after}**, before **{before}**"
        else:
            description = f"Rows {which}"
        self.shown_text.object = description

    # What is chosen

    def _pick(self, versions: Sequence[DatasetVersion]) -> tuple[int, int]:
        """Return the version that is shown and the one it is compared with; 0 for none."""
        numbers = [version.version for version in versions]
        newer = self.shown[1] if self.shown[1] in numbers else max(numbers)
        older = [n for n in numbers if n < newer]
        if self.session.against in older:
            return newer, self.session.against
        return newer, max(older, default=0)

    def choose_version(self, version: int) -> None:
        """Show another version."""
        if version != (self.shown[1] or self.newer):
            self.session.param.update(dataset=self._dataset_id, version=version)

    def choose_older(self, version: int) -> None:
        """Compare the shown version with another older one."""
        self.session.against = version
        if self.difference is not None:
            self.difference.start()

    def on_session(self, *_: Any) -> None:
        """Show the version that is chosen now."""
        if (self.session.dataset, self.session.version) != self.shown:
            self.open()


def _names(versions: Sequence[DatasetVersion]) -> dict[str, int]:
    return {
        f"version {version.version} ({version.rows:,} rows, {ago(version.created_at)})": version.version
        for version in versions
    }


def _show_versions(versions: Sequence[DatasetVersion], reviews: Mapping[int, str]) -> Viewable:
    return table(
        ("version", "made", "by", "rows", "added", "to train on", "for the check", "texts"),
        [
            (
                str(version.version),
                when(version.created_at),
                _made_by(version, reviews),
                f"{version.rows:,}",
                _added(version, reviews),
                f"{version.split.training:,}",
                f"{version.split.evaluation:,}",
                f"{version.contexts:,}",
            )
            for version in versions
        ],
        label="Versions, newest first",
        numbers=(0, 3, 4, 5, 6, 7),
    )


def _made_by(version: DatasetVersion, reviews: Mapping[int, str]) -> str:
    if version.version in reviews:
        return f"the review {reviews[version.version]}"
    via = _VIA.get(version.added_via, version.added_via)
    return f"{via}, from {version.added_from}" if version.added_from else via


def _added(version: DatasetVersion, reviews: Mapping[int, str]) -> str:
    is_revision = version.version in reviews and version.version > 1
    return f"{version.added:,} relabelled" if is_revision else f"{version.added:,}"


def _difference_facts(diff: Mapping[str, Any], *, is_review: bool) -> dict[str, str]:
    relabelled = sum(change["contexts"] for change in diff["relabelled"])
    sides = ", ".join(f"{n:,} {side}" for side, n in diff["sides"].items())
    n_added = f"{diff['rows']:,}" + (f": {sides}" if sides else "")
    n_both = sum(change["both"] for change in diff["relabelled"])
    stay = f"; of {n_both:,} the old label stays, too" if n_both else ""
    changed = f"{relabelled:,} (a question about a text){stay}"
    if is_review:
        values = {
            "Rows relabelled": n_added,
            "Rows excluded": f"{max(0, diff.get('removed', 0) - diff['rows']):,}",
            "Labels that changed": changed,
        }
    else:
        values = {
            "Rows added": n_added,
            "Rows removed": f"{diff.get('removed', 0):,}",
            "Texts added": f"{diff['contexts']:,}",
            "Labels that changed": changed,
        }
    word = "Relabelled" if is_review else "Added"
    for decision, counts in diff["expected"].items():
        spread = ", ".join(f"{outcome} ({n:,})" for outcome, n in counts.items())
        values[f"{word}, {decision}"] = f"{spread} (n = {sum(counts.values()):,})"
    return values


def draw_sides(versions: Sequence[DatasetVersion], open_: Callable[[int], None]) -> BarList:
    """Draw the rows of each side, a bar a version; a bar opens its version."""
    drawn = versions[:MOST_VERSIONS]
    most = max((version.rows for version in drawn), default=0) or 1
    bars: list[Bar] = []
    for version in drawn:
        sides = (version.split.training, version.split.evaluation)
        text = f"{sides[0]:,} + {sides[1]:,}"
        parts = [n / most for n in sides]
        bars.append({"name": f"version {version.version}", "parts": parts, "text": text})
    series = [("to train on", BLUE), ("for the check", ORANGE)]
    chart: BarChart = {"title": "Rows by side", "series": series, "bars": bars}
    return BarList([chart], lambda _, bar: open_(drawn[bar].version))


def draw_transitions(
    decision: str, counts: Mapping[Transition, int], open_: Callable[[Transition], None]
) -> Any:
    """Draw a matrix of the labels of one decision that changed; a cell opens its rows."""
    transitions = [transition for transition in counts if transition.decision == decision]
    outcomes = sorted(
        {name for transition in transitions for name in (transition.before, transition.after)}
    )
    most = max(counts[transition] for transition in transitions)
    source = ColumnDataSource(
        {
            "before": [transition.before for transition in transitions],
            "after": [transition.after for transition in transitions],
            "n": [counts[transition] for transition in transitions],
            "color": [
                figures.blend(counts[transition] / most, _PALE, _FULL) for transition in transitions
            ],
        }
    )
    total = sum(counts[transition] for transition in transitions)
    chart = figures.plot(
        f"{decision}: texts whose label changed (n = {total:,})",
        "to",
        "from",
        height=130 + _CELL * len(outcomes),
        x_range=outcomes,
        y_range=list(reversed(outcomes)),
    )
    chart.rect(
        x="after",
        y="before",
        width=0.94,
        height=0.94,
        source=source,
        color="color",
        line_color=None,
    )
    # The cells are light in both themes, so that the numbers in them can be black.
    chart.text(
        x="after",
        y="before",
        text="n",
        source=source,
        text_align="center",
        text_baseline="middle",
        text_color="black",
    )
    chart.hover.tooltips = [("from", "@before"), ("to", "@after"), ("contexts", "@n{0,0}")]
    chart.xaxis.major_label_orientation = 0.6
    figures.on_tap(chart, source, lambda place: open_(transitions[place]))
    return chart
