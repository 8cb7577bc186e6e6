"""Datasets: all of them, one of them with its rows, and files that become more of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
import polars as pl
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard_workbench.kit import corner
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.components.frame_table import FrameTable, PageRequest, TablePage
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded, Page, SharedFetch
from steelyard_workbench.kit.problems import problem_of
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import OneAtATime, Scope, Task, Write
from steelyard_workbench.kit.theme import token
from steelyard_workbench.kit.views import (
    Details,
    card,
    empty,
    failed,
    heading,
    loading,
    unseen_heading,
)
from steelyard_workbench.kit.words import ago, counted, escape_markdown
from steelyard_workbench.pages.datasets.import_panel import ImportPanel
from steelyard_workbench.parts.beginning import load_sample
from steelyard_workbench.parts.datasets.files import export_dialog
from steelyard_workbench.parts.datasets.names import dataset_options
from steelyard_workbench.parts.datasets.next_steps import MAP, NextStep, fetch_next, next_steps
from steelyard_workbench.parts.datasets.overview import (
    METHODS,
    section,
    show_doubts,
    show_facts,
    show_labels,
    show_readiness,
    size_text,
    when,
)
from steelyard_workbench.parts.datasets.row_pages import search_page
from steelyard_workbench.parts.datasets.row_table import RowTable
from steelyard_workbench.parts.review.filter_bar import FilterBar
from steelyard_workbench.parts.review.row_filter import RowFilter, read_query

#: Datasets that are listed.
MOST_DATASETS = 1000
_COLUMNS = {
    "name": ("Name", 230),
    "rows": ("Rows", 80),
    "training": ("To train on", 100),
    "evaluation": ("For the check", 110),
    "method": ("Labelled with", 115),
    "version": ("Version", 90),
    "made": ("Made", 135),
    "used": ("Last used", 105),
}
_NOTHING = (
    "**No datasets yet.** A dataset is rows: a text, the questions asked about it and what is "
    "right; models are evaluated and fine-tuned on it. Import a table (CSV, Excel, Parquet) or JSON "
    "Lines, or load a sample."
)


class DatasetsPage(Page):
    """Every dataset, or the one that is chosen."""

    slug = "datasets"
    title = "Datasets"
    summary = "Texts with what is right about them, in versions that never change."
    watched = ("dataset",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.shown = ""
        self.rows: RowTable | None = None
        self.bar: FilterBar | None = None
        self.list: FrameTable | None = None
        self.importing: ImportPanel | None = None
        self.actions: DatasetActions | None = None
        self.details: Details | None = None

    def open(self) -> None:
        """Show the page."""
        self.rows = self.bar = self.list = self.importing = self.details = None
        self.shown = self.session.dataset
        super().open()
        if self.list is not None:
            self.load_list.start()
        if self.rows is not None:
            self.rows.reload()

    def reconnect(self) -> None:
        """Catch up once the server answers: failed parts are fetched again."""
        super().reconnect()
        if self.list is not None and self.list.has_failed:
            self.load_list.start()
        if self.rows is not None and self.rows.table.has_failed:
            self.rows.reload()

    def build(self) -> list[Viewable]:
        """Return the list, or the parts of the dataset that is chosen."""
        return self._build_dataset() if self.session.dataset else self._build_list()

    def on_key(self, action: str, _: int) -> bool:
        """Search, or go from row to row."""
        if action == "search" and self.bar is not None:
            self.bar.focus()
            return True
        if self.list is not None:
            return self.list.on_key(action)
        return self.rows is not None and self.rows.on_key(action)

    # The list

    def _build_list(self) -> list[Viewable]:
        self._archived = pmui.Switch(label="Archived ones", value=False)
        self.load_list = Task(self._load_list, scope=self.visit)
        pn.bind(self.load_list.on_event, self._archived, watch=True)
        # Finds one of many by its name.
        self.choose = pmui.Select(
            label="Open a dataset", options={"": ""}, value="", width=320, searchable=True
        )
        pn.bind(self._choose_dataset, self.choose, watch=True)
        self.list = FrameTable(
            self._list_page,
            what="The datasets",
            id_column="id",
            columns=_COLUMNS,
            sortable=("name", "rows", "training", "evaluation", "version"),
            on_open=lambda row: self._choose_dataset(row["id"]),
            address=lambda row: self.session.address("datasets", dataset=row["id"]),
        )
        # One that could not be loaded is tried again by the table itself.
        pn.bind(self._offer, self.list.param.total, watch=True)
        # The table comes in once it has rows: one that is built and hidden raises in the browser.
        self._list_state = stack(loading(4, "The datasets"))
        self.importing = self._import_panel(None)
        adding = [section("Import a file", self.importing)] if self.session.may_change else []
        return [
            pn.FlexBox(self.choose, self._archived, align_items="center"),
            self._list_state,
            *adding,
        ]

    async def _load_list(self) -> None:
        """Fetch the datasets again."""
        if self.list is None:
            return
        self._every = self._fetch_every(is_archived=self._archived.value)
        await self.list.restart()
        self._offer()
        if self._every.held([]) or self.list.has_failed:
            self._list_state[:] = [self.list]
        elif self._archived.value:
            back = action_button(
                "Show the others", lambda _: self._archived.param.update(value=False)
            )
            self._list_state[:] = [empty("No dataset is archived.", back)]
        else:
            self._list_state[:] = [empty(_NOTHING, *self._sample_buttons())]

    def _sample_buttons(self) -> list[Viewable]:
        """Return the button that loads a sample, for a role that may make datasets."""
        if not self.session.may_change:
            return []
        visit, place = self.visit, stack()

        async def load() -> None:
            dataset = await asyncio.to_thread(load_sample, self.client)
            self._on_imported(dataset, f"Loaded: {dataset.name}, {dataset.rows:,} rows.", visit)

        button = action_button(
            "Load the sample",
            Write(load, "Not loaded:", place, refused="Load the sample", scope=visit).on_event,
        )
        return [button, place]

    def _fetch_every(self, *, is_archived: bool) -> SharedFetch[list[Dataset]]:
        """Return a fetcher that loads the datasets once, for every page and order of the list."""
        every = self.client.datasets.iterate
        return SharedFetch(lambda: list(islice(every(archived=is_archived), MOST_DATASETS)))

    def _offer(self, *_: Any) -> None:
        self.choose.options = {"": "", **dataset_options(self._every.held([]), with_rows=True)}

    def _list_page(self, request: PageRequest) -> TablePage:
        frame = pl.DataFrame([_record(dataset) for dataset in self._every()])
        if request.sort and frame.height:
            names, falling = zip(*request.sort, strict=True)
            frame = frame.sort(names, descending=list(falling), maintain_order=True)
        return TablePage(frame.slice(request.offset, request.limit), frame.height)

    def _choose_dataset(self, dataset_id: str | None) -> None:
        if dataset_id:
            self.session.param.update(dataset=dataset_id, version=0, query="")

    # One dataset

    def _build_dataset(self) -> list[Viewable]:
        def ask(row: int) -> None:
            self.session.open("playground", dataset=self.shown, row=row, view="row")

        datasets = self.client.datasets
        self._chosen, _ = read_query(self.session.query)
        self.bar = FilterBar(self._chosen, self._on_filter)
        self.rows = RowTable(
            self._row_page,
            what="The rows",
            nothing=self._no_rows,
            on_opened=self._on_row,
            on_ask=ask if self.session.may_change else None,
        )
        fetched = SharedFetch(self._fetch_next)
        head = Loaded("The dataset", fetched, self._show_head, n_lines=2)
        labels = Loaded(
            "The labels", lambda: datasets.facets(self.shown), self._show_labels, n_lines=8
        )
        # What is under the rows would keep the browser from them, and moves nothing when it comes.
        foot = Loaded("What can be done", fetched, self._show_foot, n_lines=1, is_late=True)
        doubts = Loaded(
            "The labels to check",
            lambda: datasets.labels_to_check(self.shown),
            show_doubts,
            n_lines=1,
            is_late=True,
        )
        self.adding = stack(visible=False)
        return [
            self.part(head),
            self.adding,
            side_by_side(
                stack(self.bar, self.rows),
                stack(
                    unseen_heading("Labels and details"),
                    self.part(labels),
                    self.part(doubts),
                    self.part(foot),
                ),
                least_width=640,
                share=2.6,
            ),
        ]

    def _fetch_next(self) -> NextStep:
        """Return the dataset, and its next step."""
        dataset = self.client.datasets.get(self.shown)
        return NextStep(dataset, *fetch_next(self.session, dataset))

    def _show_head(self, following: NextStep) -> Viewable:
        dataset = following.dataset
        self.export = export_dialog(self.client, dataset, dataset.version)
        self.importing = self._import_panel(dataset)
        steps = next_steps(self.session, dataset, dataset.version, "it")
        self.actions = DatasetActions(
            self,
            dataset,
            [
                Choice(
                    "Show its versions",
                    lambda: self.session.open("versions", version=0),
                    look="outlined",
                ),
                *(step for step in steps if step.label == MAP),
                Choice("Export…", self.export.open, look="outlined"),
            ],
        )
        first = [step for step in steps if step.label == following.label]
        rest = [step for step in steps if step.label not in {MAP, following.label}]
        if dataset.archived_at is not None and self.session.may_change:
            first, rest = [Choice("Restore it", self.actions.restore.start)], []
        shown = [
            *(replace(step, look="filled", label=following.text or step.label) for step in first),
            *rest,
        ]
        if dataset.archived_at is None and self.session.may_change:
            shown.append(Choice("Add rows", self._turn_adding, look="outlined"))
        return stack(
            small_text(size_text(dataset), sx={"color": token("muted")}),
            Choices(shown, layout="row"),
        )

    def _turn_adding(self) -> None:
        """Show or hide the import of more rows."""
        if not self.adding.objects and self.importing is not None:
            self.adding[:] = [card(heading("Add rows"), self.importing)]
        self.adding.visible = not self.adding.visible

    def _show_foot(self, following: NextStep) -> Viewable:
        self.details = Details(
            lambda: self._detailed(following.dataset), "versions, export, name, id, SHA-256"
        )
        return self.details.__panel__()

    def _detailed(self, dataset: Dataset) -> list[Viewable]:
        views = [] if self.actions is None else [self.actions.__panel__(), self.export]
        ready = section("What prompt tuning can tune", show_readiness(dataset))
        return [show_facts(dataset), *views, ready]

    def _show_labels(self, facets: dict[str, Any]) -> Viewable:
        if self.bar is not None:
            self.bar.offer(
                {
                    decision: {outcome: (outcome,) for outcome in counts}
                    for decision, counts in facets["expected"].items()
                }
            )
        return show_labels(
            facets,
            lambda decision, outcome: self._choose_rows(RowFilter(expected=((decision, outcome),))),
        )

    def _row_page(self, request: PageRequest) -> TablePage:
        chosen = self._chosen
        return search_page(self.client, self.shown, request, where=chosen.where, text=chosen.text)

    def _no_rows(self) -> Viewable:
        if not self._chosen.parts:
            return empty("The dataset has no rows.")
        filters = ", ".join(f"*{escape_markdown(text)}*" for text, _ in self._chosen.parts)
        clear = action_button("Clear the filter", lambda _: self._choose_rows(RowFilter()))
        return empty(f"No row matches {filters}.", clear)

    def _choose_rows(self, row_filter: RowFilter) -> None:
        if self.bar is not None:
            self.bar.choose(row_filter)

    def _on_filter(self, row_filter: RowFilter) -> None:
        self._chosen = row_filter
        fields = row_filter.to_json()
        self.session.query = json.dumps(fields, ensure_ascii=False) if fields else ""
        if self.rows is not None:
            self.rows.reload()

    def _on_row(self, place: int | None) -> None:
        self.session.selected = [] if place is None else [place]

    def _import_panel(self, dataset: Dataset | None) -> ImportPanel:
        visit = self.visit
        return ImportPanel(
            self.client,
            dataset,
            lambda made, message: self._on_imported(made, message, visit),
            scope=visit,
        )

    # What was asked for may be done when the person is elsewhere: then it is said in the corner.

    def _on_imported(self, dataset: Dataset, done: str, visit: Scope) -> None:
        if self.session.page == self.slug and dataset.id == self.shown:
            corner.say(done)
            self.open()  # in another visit too: the page is older
        elif not visit.say_if_ended(f"{done} It is on the Datasets page."):
            corner.say(done)
            self._choose_dataset(dataset.id)

    def on_session(self, *_: Any) -> None:
        """Show the dataset that is chosen now."""
        if self.session.dataset != self.shown:
            self.open()


def _record(dataset: Dataset) -> dict[str, Any]:
    return {
        "id": dataset.id,
        "name": dataset.name,
        "rows": dataset.rows,
        "training": dataset.split.training,
        "evaluation": dataset.split.evaluation,
        "method": METHODS[dataset.method],
        "version": dataset.version,
        "made": when(dataset.created_at),
        "used": ago(dataset.used_at),
    }


class DatasetActions(Boxed):
    """Buttons of a dataset, after those of ``steps``; it is changed only where the user may."""

    def __init__(self, page: DatasetsPage, dataset: Dataset, steps: Sequence[Choice]) -> None:
        super().__init__()
        self._page, self._visit = page, page.visit
        self.client, self._dataset = page.client, dataset
        self.asked: Confirmation | None = None
        self.problem = stack()
        restore = partial(
            self._do, lambda: self.client.datasets.restore(dataset.id), self._on_changed
        )
        archive = partial(
            self._do, lambda: self.client.datasets.archive(dataset.id), self._on_changed
        )
        self.restore = OneAtATime(restore, "Not restored:", self.problem)
        self.archive = OneAtATime(archive, "Not archived:", self.problem)
        self._steps = list(steps)
        changes = self._changes() if page.session.may_change else []
        self.buttons = Choices(self._steps + changes, layout="row")
        self._dialog = pn.Column()
        self._box = stack(self.buttons, self.problem, self._dialog)

    def _on_changed(self) -> None:
        if not self._visit.has_ended:
            self._page.open()

    def _on_deleted(self) -> None:
        if not self._visit.say_if_ended(f"Deleted: the dataset {self._dataset.name}."):
            self._page.session.param.update(dataset="", version=0, query="")

    def _changes(self, *, may_change: bool = True) -> list[Choice]:
        is_archived = self._dataset.archived_at is not None
        hint = "It stays readable, takes no new work, and can be restored."
        changes = [
            Choice("Rename", self.ask_name, look="outlined"),
            Choice("Restore", self.restore.start, look="filled")
            if is_archived
            else Choice("Archive", self.archive.start, look="outlined", hint=hint),
            Choice("Delete", self.ask_delete, look="danger"),
        ]
        return changes if may_change else [replace(choice, do=None) for choice in changes]

    def ask_name(self) -> None:
        """Ask for another name."""
        field = pmui.TextInput(
            label="Name", value=self._dataset.name, max_length=128, sizing_mode="stretch_width"
        )

        rename = partial(
            self._do,
            lambda: self.client.datasets.rename(self._dataset.id, field.value_input),
            self._on_changed,
        )
        self._ask("Rename the dataset", field, action="Rename", act=rename)

    def ask_delete(self) -> None:
        """Ask whether to delete it, and for its name."""
        datasets = self.client.datasets
        versions = counted(self._dataset.version, "version")
        warning = pmui.Typography(
            f"{escape_markdown(self._dataset.name)} has {self._dataset.rows:,} rows in {versions}. "
            "All of them go, for good; models that were trained on them stay.",
            variant="body1",
        )

        delete = partial(self._do, lambda: datasets.delete(self._dataset.id), self._on_deleted)
        self._ask(
            "Delete the dataset?",
            warning,
            action="Delete it",
            act=delete,
            typed=self._dataset.name,
            is_harmful=True,
        )

    async def _do(self, work: Callable[[], Any], then: Callable[[], None]) -> bool:
        """Do something that a permission may be missing for: then no button can be used."""
        try:
            await asyncio.to_thread(work)
        except SteelyardError as error:
            problem = problem_of(error, "Not changed:")
            if not problem.is_forbidden:
                raise
            self.buttons.offer(self._steps + self._changes(may_change=False))
            self.problem[:] = [failed(problem)]
            if self.asked is not None:
                self.asked.close()
            return False
        then()
        return True

    def _ask(self, title: str, content: Viewable, **options: Any) -> None:
        self.asked = Confirmation(title, content, **options)
        self._dialog[:] = [self.asked]
