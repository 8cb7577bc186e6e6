"""A list that comes in pages, the newest first: each further page goes under those that are there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from panel.viewable import Viewable

from steelyard.wire.queries import CursorPage
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.mark_table import MarkTable, mark_table
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.tasks import OneAtATime, Scope
from steelyard_workbench.kit.views import empty, table

T = TypeVar("T")


class PagedTable(Boxed, Generic[T]):
    """A table of a paged list.

    ``what``: its name, as ``The audit``, for messages. ``fetch`` takes a cursor, or ``None``, and
    returns a page; blocks, and runs in a thread. ``cells`` takes one thing and returns its texts.
    ``nothing``: the text of an empty list, as Markdown. ``open_`` is called with the thing
    whose line was opened.
    """

    def __init__(
        self,
        what: str,
        fetch: Callable[[str | None], CursorPage[T]],
        columns: Sequence[str],
        cells: Callable[[T], Sequence[str]],
        *,
        nothing: str,
        scope: Scope,
        open_: Callable[[T], None] | None = None,
        opens: str = "",
        numbers: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self._what, self._fetch, self._columns, self._cells = what, fetch, columns, cells
        self._nothing, self._open, self._opens, self._numbers = nothing, open_, opens, numbers
        self.found: list[T] = []
        self._cursor: str | None = None
        self._problem = stack()
        self.load_older = OneAtATime(
            self._load_older, not_loaded("What is older"), self._problem, scope=scope
        )
        self.older = action_button(
            "Load older", self.load_older.on_event, variant="text", size="small", visible=False
        )
        self.part: Loaded[CursorPage[T]] = Loaded(what, lambda: fetch(None), self._begin)
        self._table = stack()
        self._box = stack(self.part, self.older, self._problem)

    def _begin(self, page: CursorPage[T]) -> Viewable:
        self.load_older.drop()
        self._problem[:] = []
        self.found, self._cursor = list(page.data), page.next_cursor
        self._table = stack()
        self._show()
        return self._table

    async def _load_older(self) -> None:
        page = await asyncio.to_thread(self._fetch, self._cursor)
        self._problem[:] = []
        self.found = [*self.found, *page.data]
        self._cursor = page.next_cursor
        self._show()

    def _show(self) -> None:
        self.older.visible = self._cursor is not None
        rows = [list(self._cells(entry)) for entry in self.found]
        view: Any = self._table[0] if self._table else None
        open_ = self._open
        if not rows:
            self._table[:] = [empty(self._nothing)]
        elif isinstance(view, MarkTable):
            view.rows = rows
        elif open_ is not None:
            self._table[:] = [
                mark_table(
                    self._columns,
                    rows,
                    label=self._what,
                    open_=lambda place: open_(self.found[place]),
                    numbers=self._numbers,
                    opens=self._opens,
                )
            ]
        else:
            self._table[:] = [table(self._columns, rows, label=self._what, numbers=self._numbers)]
