"""Review: the labels of a dataset gone through row by row, and sealed into data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.review.wire import Draft
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import OneAtATime, Scope, Write
from steelyard_workbench.kit.views import empty, heading, table
from steelyard_workbench.kit.words import ago, counted, escape_markdown
from steelyard_workbench.pages.review.desk import Desk
from steelyard_workbench.parts.datasets.names import dataset_options, no_datasets

#: Datasets that are offered, and drafts that are listed with their counts at a time.
MOST_DATASETS, MOST_DRAFTS = 500, 20
_STARTED = "The review is started. It is in the list of reviews on the Review page."


class ReviewPage(Page):
    """Decide on rows; ``desk`` is the review that is shown, ``None`` while a draft is chosen."""

    slug = "review"
    title = "Review"
    summary = "A review holds your decisions on a version. Finishing it makes a new version."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.desk: Desk | None = None
        # Kept by draft: edits that wait for the server outlast a look at another page.
        self._desks: dict[str, Desk] = {}

    def build(self) -> list[Viewable]:
        """Return the draft under review, or the choice of one."""
        self.desk = None
        if not self.session.draft:
            picker = Picker(self.session, self._open_draft, self._forget, self.visit)
            self.part(picker.part)
            return [picker.__panel__()]
        if self.session.draft in self._desks:
            self.desk = self._desks[self.session.draft]
            if self.session.query:
                self.desk.look_at(self.session.query)
            self.desk.start()
            return [self.desk.__panel__()]
        back = action_button("Other reviews", lambda _: self._leave(), variant="text", size="small")

        def show(draft: Draft) -> Viewable:
            back.visible = False
            return self._show(draft)

        draft_id = self.session.draft
        return [
            self.part(Loaded("The review", lambda: self.client.drafts.get(draft_id), show)),
            back,
        ]

    def close(self) -> None:
        """Leave the page; a draft that is still on its way is not shown."""
        super().close()
        if self.desk is not None:
            self.desk.stop()

    def reconnect(self) -> None:
        """Catch up once the server answers: send waiting edits, and fetch failed parts."""
        super().reconnect()
        for desk in self._desks.values():
            desk.reconnect()

    def answered(self) -> None:
        """Send edits that wait: they may have been lost while no poll saw the server away."""
        for desk in self._desks.values():
            if desk.queue.is_lost:
                desk.reconnect()

    def on_key(self, action: str, number: int) -> bool:
        """Decide by keys."""
        return self.desk is not None and self.desk.on_key(action, number)

    def _show(self, draft: Draft) -> Viewable:
        self.desk = self._desks[draft.id] = Desk(self.session, draft, self._leave)
        self.session.param.update(
            dataset=draft.dataset_id, version=draft.dataset_version, selected=[]
        )
        self.desk.start()
        return self.desk.__panel__()

    def _open_draft(self, draft_id: str) -> None:
        self.session.param.update(draft=draft_id, query="")
        self.open()

    def _forget(self, draft_id: str) -> None:
        """Keep nothing of a draft that is gone."""
        self._desks.pop(draft_id, None)

    def _leave(self) -> None:
        self.close()
        self.session.param.update(draft="", query="", view="")
        self.open()


@dataclass(frozen=True, slots=True)
class DraftList:
    """Open drafts of the chosen dataset, or of all while none is chosen, newest first."""

    drafts: list[Draft]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ReviewChoices:
    """The datasets and drafts to review."""

    datasets: list[Dataset]
    drafts: DraftList


class Picker(Boxed):
    """Asks which draft to review or to delete, by its id."""

    def __init__(
        self,
        session: Session,
        on_draft: Callable[[str], None],
        on_deleted: Callable[[str], None],
        scope: Scope | None = None,
    ) -> None:
        super().__init__()
        self._session, self._on_draft, self._on_deleted = session, on_draft, on_deleted
        self._client: Client = session.client
        self._scope = scope or Scope()
        self.asked: Confirmation | None = None
        self._names: dict[str, str] = {}
        self._cursor: str | None = None
        self._lines = stack()
        self._more_text = small_text("")

        self._said = stack()
        self.load_more = OneAtATime(
            self._load_more, not_loaded("Older reviews"), self._said, can_retry=False, scope=scope
        )
        self._more = action_button("Load more", self.load_more.on_event, size="small")
        self.start = Write(
            self._start, "Not started:", self._said, refused="Start a review", scope=scope
        )
        self._dialog = pn.Column()
        self.part = Loaded("The reviews", self._fetch, self._show)
        self._box = stack(self.part, self._said, self._dialog)

    async def _start(self) -> None:
        dataset, version = self._session.dataset, self._session.version
        draft = await asyncio.to_thread(self._client.drafts.create, dataset, version or None)
        if not self._scope.say_if_ended(_STARTED):
            self._on_draft(draft.id)

    async def _load_more(self) -> None:
        drafts = await asyncio.to_thread(self._fetch_drafts, self._cursor)
        self._said[:] = []
        self._list(drafts)

    def ask_delete(self, draft: Draft) -> None:
        """Ask whether to delete a draft, and for its name."""
        edits = counted(draft.revision, "edit")
        warning = pmui.Typography(
            f"{escape_markdown(draft.name)} goes for good, with its {edits}. The dataset stays as it "
            "is.",
            variant="body1",
        )

        async def delete() -> bool:
            await asyncio.to_thread(self._client.drafts.delete, draft.id)
            self._on_deleted(draft.id)
            self.part.start()
            return True

        self.asked = Confirmation(
            "Delete the review?",
            warning,
            action="Delete it",
            act=delete,
            typed=draft.name,
            is_harmful=True,
        )
        self._dialog[:] = [self.asked]

    def _fetch(self) -> ReviewChoices:
        datasets = list(islice(self._client.datasets.iterate(), MOST_DATASETS))
        return ReviewChoices(datasets, self._fetch_drafts(None))

    def _fetch_drafts(self, cursor: str | None) -> DraftList:
        page = self._client.drafts.list(
            dataset_id=self._session.dataset or None,
            status="open",
            limit=MOST_DRAFTS,
            cursor=cursor,
        )
        drafts = [self._client.drafts.get(draft.id) for draft in page.data]
        return DraftList(drafts, page.next_cursor)

    def _show(self, choices: ReviewChoices) -> Viewable:
        if not choices.datasets:
            text = "In a review you go through the rows of one and correct their labels."
            return no_datasets(self._session, text)
        names = dataset_options(choices.datasets, with_rows=True)
        is_listed = self._session.dataset in names.values()
        # Where no choice is empty, Panel takes the first.
        dataset = pmui.Select(
            label="Dataset",
            options=names if is_listed else {"": "", **names},
            value=self._session.dataset if is_listed else "",
            width=340,
        )
        pn.bind(self._on_dataset, dataset, watch=True)
        may_start = self._session.may_change
        # Where one is open, to go on with it is the next step.
        look = "outlined" if choices.drafts.drafts else "contained"
        start = action_button(
            "Start a review", self.start.on_event, variant=look, disabled=not is_listed
        )
        hint = "" if is_listed else "Choose the dataset to review."
        if is_listed and self._session.version:
            hint = f"Of version {self._session.version}."
        parts: list[Viewable] = [
            pn.Row(dataset, *([start] if may_start else []), small_text(hint)),
            heading("Open reviews"),
        ]
        if not choices.drafts.drafts:
            begin = (
                "**Start a review** begins one." if may_start else "Who assigns rows begins one."
            )
            parts.append(empty(f"No review is open. {begin}"))
        self._names = {dataset_row.id: dataset_row.name for dataset_row in choices.datasets}
        self.load_more.drop()
        self._lines[:] = []
        self._list(choices.drafts)
        return stack(*parts, self._lines, self._more_text, self._more)

    def _list(self, drafts: DraftList) -> None:
        """Add drafts to those that are listed, and say whether there are more."""
        self._cursor = drafts.next_cursor
        self._lines.extend([self._line(draft) for draft in drafts.drafts])
        has_more = drafts.next_cursor is not None
        self._more_text.object = f"The {len(self._lines):,} newest are listed; there are more."
        self._more_text.visible = self._more.visible = has_more

    def _line(self, draft: Draft) -> Viewable:
        go = action_button(
            f"Open {draft.name}",
            lambda _: self._on_draft(draft.id),
            variant="contained",
            size="small",
        )
        delete = action_button(
            f"Delete {draft.name}…",
            lambda _: self.ask_delete(draft),
            variant="text",
            size="small",
            color="danger",
        )
        states = draft.states
        n_done = sum(states.get(name, 0) for name in ("accepted", "relabelled", "excluded"))
        of = f"{self._names.get(draft.dataset_id, draft.dataset_id)}, version {draft.dataset_version}"
        counts = (
            of,
            f"{n_done:,} of {draft.rows:,}",
            f"{states.get('relabelled', 0):,}",
            f"{states.get('excluded', 0):,}",
            f"{draft.noted:,}",
            ago(draft.updated_at),
        )
        columns = ("dataset", "decided", "relabelled", "excluded", "noted", "last edit")
        return stack(
            table(columns, [counts], label=f"Review {draft.name}"),
            pn.Row(go, delete) if self._session.may_change else go,
        )

    def _on_dataset(self, dataset_id: str | None) -> None:
        self._session.param.update(dataset=dataset_id or "", version=0)
        self.part.start()
