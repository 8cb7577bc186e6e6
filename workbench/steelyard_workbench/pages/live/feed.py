"""The feed: the latest decisions that match, newest first, looked for again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import polars as pl
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.decision_log.wire import DecisionLogPage, LoggedDecision, LoggedResult
from steelyard.wire.queries import ExportFormat
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.files import ExportButtons
from steelyard_workbench.kit.components.frame_table import FrameTable, PageRequest, TablePage
from steelyard_workbench.kit.look import bar, coloured_chip, pill
from steelyard_workbench.kit.problems import Problem, not_loaded, problem_of
from steelyard_workbench.kit.tasks import OneAtATime, Task
from steelyard_workbench.kit.theme import outcome_colours
from steelyard_workbench.kit.views import failed, loading
from steelyard_workbench.parts.live.view import View

_PAGE = 200
#: Nothing is cut while an answer is open beside the table.
_COLUMNS = {
    "at": ("When, UTC", 112),
    "text": ("Text", 360),
    "answer": ("Answer", 140),
    "sure": ("How sure", 110),
    "right": ("Was it right?", 140),
}
_MARKUP = ("answer", "sure", "right")
#: Pages that a look goes through for one that is not empty: filters may leave pages short.
_MOST_PAGES = 5


class Feed(Boxed):
    """A table of stored answers, newest first; ``on_open`` is called with the id of a chosen one."""

    def __init__(
        self,
        client: Client,
        *,
        on_open: Callable[[str], None],
        on_change: Callable[[], None],
        nothing: Callable[[], Viewable],
    ) -> None:
        super().__init__()
        self._client = client
        self._on_change, self._nothing = on_change, nothing
        self._on_open = on_open
        self.view = View()
        self.entries: list[LoggedDecision] = []
        self.problem: Problem | None = None
        self._held: DecisionLogPage | None = None
        self._cursor: str | None = None
        self._is_new = True
        self.opened = ""
        self.table = FrameTable(
            self._rows,
            what="The decisions",
            id_column="id",
            columns=_COLUMNS,
            page_size=20,
            wrapped=("text",),
            markup=_MARKUP,
            selectable=True,
            on_open=lambda row: on_open(row["id"]),
        )
        self.state = stack(loading(6, "The decisions"))
        self.new = action_button("", self.show_new, size="small", visible=False)
        self._looking = Task(self._ask, on_failure=self._show_failure)
        self.load_older = OneAtATime(
            self._load_older, not_loaded("Older decisions"), self.state, can_retry=False
        )
        self.older = action_button(
            "Load older", self.load_older.on_event, variant="text", size="small", visible=False
        )
        self.exports = ExportButtons(self._export, lambda ending: f"decisions.{ending}")
        #: What is drawn once there is a decision.
        self._parts = [self.new, self.table, self.older, self.exports]
        self.shown = stack(visible=False)
        self._box = stack(self.state, self.shown)

    @property
    def selected(self) -> list[str]:
        """Ids of the answers that are selected."""
        return list(self.table.selected)

    async def show(self, view: View) -> None:
        """Show a view's answers, from the newest on."""
        self.load_older.drop()
        self.view = view
        self._is_new = True
        self._held = None
        self.new.visible = False
        self.state[:] = [loading(6, "The decisions")]
        self.shown.visible = False
        await self.look()

    async def look(self, *_: Any) -> None:
        """Look for new answers. Where a person reads or selects, they wait behind a button."""
        page = await self._looking()
        if page is None:
            return
        had_problem, self.problem = self.problem is not None, None
        # A look may overtake the first one at a view: it is the first then.
        if self._is_new:
            await self._begin_with(page, restart=True)
            return
        if had_problem:
            self.state[:] = []
        before = self.entries[: len(page.data)] if self._held is None else self._held.data
        is_same = page.data == before and (page.has_more or len(self.entries) <= len(page.data))
        if is_same and not had_problem:
            return
        self._on_change()
        if self.table.page or self.table.selected or len(self.entries) > _PAGE:
            self._hold(page)
        else:
            await self._begin_with(page, restart=False)

    async def _ask(self) -> DecisionLogPage:
        return await asyncio.to_thread(self._fetch, self.view, None)

    def _show_failure(self, error: Exception) -> None:
        self.problem = problem_of(error, not_loaded("The decisions"))
        self.state[:] = [failed(self.problem, self.look)]

    async def show_new(self, *_: Any) -> None:
        """Show the new answers."""
        if self._held is not None:
            page, self._held = self._held, None
            self.new.visible = False
            await self._begin_with(page, restart=True)

    async def _load_older(self) -> None:
        if self._cursor is None or self._is_new:
            return
        page = await asyncio.to_thread(self._fetch, self.view, self._cursor)
        self.entries = [*self.entries, *page.data]
        self._cursor = page.next_cursor
        await self._fill(restart=False)

    def step(self, by: int) -> None:
        """Open the answer after the one that is open, or before it."""
        ids = [entry.id for entry in self.entries]
        if not ids:
            return
        here = ids.index(self.opened) if self.opened in ids else -1 if by > 0 else 0
        self._on_open(ids[min(max(here + by, 0), len(ids) - 1)])

    def _hold(self, page: DecisionLogPage) -> None:
        known = {entry.id for entry in self.entries}
        n = sum(entry.id not in known for entry in page.data)
        self._held = page
        more = "" if n < len(page.data) else " or more"
        self.new.label = f"Show {n:,}{more} new" if n else "Show what changed"
        self.new.visible = True

    async def _begin_with(self, page: DecisionLogPage, *, restart: bool) -> None:
        """Show a page of the newest, in place of pages loaded after it."""
        if page.next_cursor != self._cursor:
            self.load_older.drop()
        self.entries, self._cursor = page.data, page.next_cursor
        await self._fill(restart=restart)

    async def _fill(self, *, restart: bool) -> None:
        self._is_new = False
        self.older.visible = self._cursor is not None
        self.shown.visible = bool(self.entries)
        self.state[:] = [] if self.entries else [self._nothing()]
        await (self.table.restart() if restart else self.table.refresh())
        if self.entries and not self.shown.objects:
            self.shown[:] = self._parts

    def _fetch(self, view: View, cursor: str | None) -> DecisionLogPage:
        query: dict[str, Any] = view.log_query(time.time())
        page = self._client.decision_log(**query, limit=_PAGE, cursor=cursor)
        for _ in range(_MOST_PAGES - 1):
            if page.data or page.next_cursor is None:
                break
            page = self._client.decision_log(**query, limit=_PAGE, cursor=page.next_cursor)
        return page

    def _export(self, format_: ExportFormat) -> bytes:
        """Return every decision of the view, those that are not loaded too."""
        query: dict[str, Any] = self.view.log_query(time.time())
        del query["order"]
        return self._client.export_decisions(format_, **query)

    def _rows(self, request: PageRequest) -> TablePage:
        shown = self.entries[request.offset : request.offset + request.limit]
        only = self.view.rows.decision or self.view.decision
        colours = _colours(self.entries)
        rows = [_row(entry, only, colours) for entry in shown]
        return TablePage(
            pl.DataFrame(rows, schema=["id", *_COLUMNS], orient="row"), len(self.entries)
        )


def _colours(entries: list[LoggedDecision]) -> dict[str, dict[str, str]]:
    """Return the colour of each outcome that stands in the feed, by decision id."""
    names: dict[str, set[str]] = {}
    for entry in entries:
        for name, result in entry.decisions.items():
            names.setdefault(name, set()).update({result.top, likeliest(result.feedback)} - {""})
    return {name: outcome_colours(outcomes) for name, outcomes in names.items()}


def _row(entry: LoggedDecision, only: str, colours: dict[str, dict[str, str]]) -> dict[str, str]:
    results = {name: result for name, result in entry.decisions.items() if not only or name == only}
    has_several = len(results) > 1
    return {
        "id": entry.id,
        "at": moment_of(entry.created_at),
        "text": entry.text,
        "answer": _lines(
            _answer(f"{name}: " if has_several else "", result, colours[name])
            for name, result in results.items()
        ),
        "sure": _lines(
            bar(result.p_top, colours[name][result.top]) for name, result in results.items()
        ),
        "right": _lines(map(_rightness, results.values())),
    }


def _lines(parts: Iterable[str]) -> str:
    return "".join(f'<div class="one-decision">{part}</div>' for part in parts)


def _answer(before: str, result: LoggedResult, colours: dict[str, str]) -> str:
    """Return the action as HTML: the answer, or that a person was to look."""
    if result.abstained:
        return pill(f"{before}to a person", "unsure")
    text = f"{before}{result.top}"
    if result.action != result.top:
        text += f", {result.action}"
    return coloured_chip(text, colours[result.top])


def _rightness(result: LoggedResult) -> str:
    """Return as HTML whether an answer came true; of one left to a person, what was right."""
    came_true = likeliest(result.feedback)
    if not came_true:
        return '<span class="say">say</span>'
    if result.abstained:
        return pill(f"was {came_true}")
    is_right = came_true == result.top
    return pill("right", "good") if is_right else pill(f"was {came_true}", "bad")


def moment_of(at: float) -> str:
    """Return the time of today, or the day and the time, in UTC."""
    then, now = datetime.fromtimestamp(at, UTC), datetime.now(UTC)
    return f"{then:%H:%M:%S}" if then.date() == now.date() else f"{then.day} {then:%b %H:%M}"


def likeliest(outcome: str | dict[str, float] | None) -> str:
    """Return the true outcome, or the likeliest where it is not certain; empty where it is not known."""
    if outcome is None or isinstance(outcome, str):
        return outcome or ""
    return max(outcome, key=lambda name: outcome[name])


def feedback_text(outcome: str | dict[str, float] | None) -> str:
    """Return the real outcome; where it is uncertain, the likeliest with its probability."""
    if outcome is None or isinstance(outcome, str):
        return outcome or ""
    name = likeliest(outcome)
    return f"{name} {outcome[name]:.2f}"
