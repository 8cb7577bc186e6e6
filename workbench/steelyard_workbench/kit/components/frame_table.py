"""A table of any number of rows: one page of it is here, a fetcher has the rest.

Panel's Tabulator gets nothing but the page that is shown: its own remote paging filters and sorts
the whole frame again at every turn, and it takes no Polars frames (Panel 1.9). Whatever changes
there changes here alone.
"""

from __future__ import annotations

import asyncio
import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
import polars as pl

from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.components.unseen import Unseen
from steelyard_workbench.kit.look import CELL_CSS, LINK_CSS, with_tokens
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.scheduling import until_shown
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.kit.theme import FOCUS, SMALL, TEXT, token

_CLASSES = count(1)
#: A card whose rows are divided by lines: a tint under the pointer, and a bar on the row that was opened
#: last. The class stands twice since Tabulator's theme, which comes later, has looks of its own.
GRID_CSS = with_tokens(f"""
.tabulator.tabulator {{
  font-size: {TEXT}; color: var(--ink); background: var(--surface);
  border: 1px solid var(--line); border-radius: 8px; overflow: hidden;
}}
.tabulator.tabulator .tabulator-header, .tabulator.tabulator .tabulator-header .tabulator-col {{
  font-size: {SMALL}; font-weight: 600; color: var(--muted); background: var(--surface);
  border-color: var(--line);
}}
.tabulator.tabulator .tabulator-frozen {{ border-right: 0 !important; text-overflow: clip; }}
/* The arrow stands beside its word where the column is sorted, or may be next; it takes no room. */
.tabulator-col-title-holder {{ display: flex; align-items: center; }}
.tabulator-col.number .tabulator-col-title-holder {{ flex-direction: row-reverse; }}
.tabulator-col .tabulator-col-title {{ width: auto !important; padding: 0 !important; }}
.tabulator-col .tabulator-col-sorter {{ position: static !important; margin: 0 -16px 0 4px; }}
.tabulator-col.number .tabulator-col-sorter {{ margin: 0 4px 0 -16px; }}
.tabulator-col:not([aria-sort$=ending], :hover, :focus-visible) .tabulator-col-sorter {{ visibility: hidden; }}
.tabulator.tabulator .tabulator-tableholder, .tabulator.tabulator .tabulator-table {{
  background: var(--surface); color: var(--ink);
}}
/* Its theme marks even, chosen and pointed-at rows by longer selectors than can be told. */
.tabulator.tabulator .tabulator-row {{
  background: var(--surface) !important; color: var(--ink) !important;
  border-bottom: 1px solid var(--line);
}}
.tabulator.tabulator .tabulator-row:hover {{ background: var(--sunk) !important; }}
.tabulator.tabulator .tabulator-row[aria-current=true] {{
  background: var(--accent-tint) !important; box-shadow: inset 3px 0 0 var(--accent);
}}
.tabulator.tabulator .tabulator-row.tabulator-selected {{ background: var(--accent-tint) !important; }}
.tabulator-row:focus-visible, .tabulator-col:focus-visible {{
  outline: 3px solid {FOCUS}; outline-offset: -3px; z-index: 1;
}}
""")
#: Column of the frame behind the table that has the ids, as text; it is not shown.
_ID_FIELD = "id_of_row"
#: Pixels that the widest column keeps, where it was given as many, however narrow the table is.
_LEAST_WIDTH = 180
_CELL_CSS = (
    CELL_CSS
    + LINK_CSS
    + with_tokens("""
.two-lines {
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; white-space: normal; overflow-wrap: anywhere;
}
.one-decision { min-height: 26px; } .one-decision > .bar { width: 90px; top: 7px; }
.say { color: var(--accent); font-weight: 500; }
.chips { display: flex; flex-wrap: wrap; gap: 2px 4px; }
@media (max-width: 599px) {
  .tabulator .tabulator-header { height: 1px; clip-path: inset(50%); }
  .tabulator.tabulator { border: 0; }
  .tabulator.tabulator, .tabulator :is(.tabulator-tableholder, .tabulator-table) { background: none !important; }
  .tabulator .tabulator-tableholder .tabulator-table { width: 100% !important; min-width: 100% !important; }
  .tabulator .tabulator-row {
    display: flex !important; flex-wrap: wrap; gap: 2px 16px; position: relative;
    height: auto !important; min-width: 0 !important; width: auto !important;
    margin: 0 2px 10px; padding: 8px 12px;
    border: 1px solid var(--line); border-radius: 8px;
  }
  .tabulator .tabulator-row .tabulator-cell {
    display: block; flex: 1 1 40%; width: auto !important; min-width: 0 !important;
    height: auto !important; min-height: 0 !important; max-height: none !important;
    padding: 2px 0 !important; border: 0 !important; white-space: normal;
  }
  .tabulator .tabulator-row :is(.tabulator-col-resize-handle, .empty) { display: none; }
  .tabulator .tabulator-row .tabulator-cell :is(div, span) { text-align: left !important; }
  .tabulator .tabulator-row .tabulator-cell:not([tabulator-field]) {
    position: absolute !important; top: 8px; right: 12px; left: auto !important; background: none !important;
  }
  .tabulator .tabulator-row:has(.tabulator-cell:not([tabulator-field])) { padding-right: 44px; }
}
""")
)


class TableKeys(Unseen):
    """Makes the rows and headers of a Tabulator on the same page work by keys.

    ``on_open`` is called with the id of a row that was clicked, or on which Enter was pressed.
    ``on_note`` is called with the id of a row on which a note is to be written. ``on_turn`` is
    called with -1 for the page before and 1 for the next one. ``current``: id of the row that is
    marked; none when empty.
    """

    mark = param.String(default="")
    label = param.String(default="")
    sortable = param.List(default=[], item_type=str)
    id_field = param.String(default="")
    current = param.String(default="")
    n_focus = param.Integer(default=0)
    is_ready = param.Boolean(default=False)

    _esm = Path(__file__).with_name("table_keys.js")

    def __init__(
        self,
        *,
        on_open: Callable[[str], None],
        on_note: Callable[[str], None],
        on_select: Callable[[list[str], list[str]], None],
        on_turn: Callable[[int], None],
        **given: Any,
    ) -> None:
        self._on_open, self._on_note = on_open, on_note
        self._on_select, self._on_turn = on_select, on_turn
        super().__init__(**given)

    def _handle_msg(self, msg: Any) -> None:
        if "open" in msg:
            self._on_open(str(msg["open"]))
        elif "note" in msg:
            self._on_note(str(msg["note"]))
        elif "chosen" in msg:
            self._on_select(list(msg["shown"]), list(msg["chosen"]))
        elif "turn" in msg:
            self._on_turn(1 if msg["turn"] > 0 else -1)


def new_mark() -> str:
    """Return a CSS class that no other table of this process has."""
    return f"keyed-table-{next(_CLASSES)}"


@dataclass(frozen=True, slots=True)
class TablePage:
    """One page."""

    #: The page alone; the column ``id_column`` of the table tells rows apart. Without rows it may be
    #: without columns too.
    rows: pl.DataFrame
    #: Rows in all.
    total: int


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page is wanted: rows from ``offset`` on, ``limit`` at most, in an order."""

    offset: int
    limit: int
    #: Columns and whether each falls; empty for the rows' own order.
    sort: tuple[tuple[str, bool], ...] = ()


class _Table(pn.widgets.Tabulator):
    """A table whose widest column takes the room that the others leave."""

    def __init__(
        self, titles: dict[str, str], widths: Mapping[str, int], *, mark: str, **options: Any
    ) -> None:
        import pandas as pd  # Tabulator takes nothing else

        self._wide = max(widths, key=widths.__getitem__)
        self._least = min(widths[self._wide], max(_LEAST_WIDTH, widths[self._wide] // 2))
        super().__init__(
            value=pd.DataFrame(columns=list(titles), index=pd.Index([], name=_ID_FIELD)),
            titles=titles,
            widths={name: width for name, width in widths.items() if name != self._wide},
            pagination=None,
            show_index=False,
            disabled=True,
            layout="fit_columns",
            sizing_mode="stretch_width",
            css_classes=[mark],
            stylesheets=[GRID_CSS, _CELL_CSS, _card_names(titles, self._wide)],
            **options,
        )

    # What the public ``configuration`` says of a column, Panel gives to the one before it where rows
    # have boxes to select them (1.9).
    def _config_columns(self, column_objs: Any) -> Any:
        columns = super()._config_columns(column_objs)
        for column in columns:
            if column.get("field") == self._wide:
                column["minWidth"] = self._least
        return columns


class FrameTable(Boxed):
    """A table that asks for one page after the other.

    By keys, Tab goes to the headers that sort and to one row; there arrows go from row to row,
    Enter opens, space selects, and ``[`` and ``]`` turn pages, as ``keys.py`` lists them.

    ``fetch`` blocks, and runs in a thread. ``what`` is the name of the rows, as ``The rows``, for
    messages. ``id_column`` tells rows apart; it is not shown unless it is one of ``columns``. These
    have their titles and pixels, which are fixed, so that columns do not jump from page to page: the
    widest alone is wider where there is room, and narrower where there is little. ``on_open`` and
    ``on_note`` are called with the row (a dict) that was clicked or on which a key was pressed; with
    ``on_close``, keys open the row after the marked one, and close it. Of
    ``wrapped`` columns texts stand on up to two lines; those of ``chips`` have lists of texts, or of
    mappings of ``text``, ``colour`` and ``title``. With ``address``, which is called with a row too,
    the first column is a link to the page that opens.
    """

    selected = param.Parameter(default=(), doc="Ids of the selected rows, a tuple.")
    total = param.Integer(default=0, doc="Rows in all.")

    def __init__(
        self,
        fetch: Callable[[PageRequest], TablePage],
        *,
        what: str,
        id_column: str,
        columns: Mapping[str, tuple[str, int]],
        sortable: Sequence[str] = (),
        page_size: int = 25,
        selectable: bool = False,
        on_open: Callable[[dict[str, Any]], None] | None = None,
        on_note: Callable[[dict[str, Any]], None] | None = None,
        on_close: Callable[[], None] | None = None,
        wrapped: Sequence[str] = (),
        chips: Sequence[str] = (),
        markup: Sequence[str] = (),
        address: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        self._fetch = fetch
        self._id = id_column
        self._titles = {name: title for name, (title, _) in columns.items()}
        self._sortable = frozenset(sortable)
        self._page_size = page_size
        self._drawn: dict[str, Callable[[Any], str]] = dict.fromkeys(wrapped, _draw_wrapped)
        self._drawn |= dict.fromkeys(chips, _draw_chips) | dict.fromkeys(markup, str)
        self._on_open, self._on_note, self._on_close = on_open, on_note, on_close
        self._address = address
        linked = () if address is None else list(self._titles)[:1]
        self._is_filling = False
        self._rows = pl.DataFrame()
        #: Rows by the text of their id; of the page before too: visible rows may be overtaken
        #: before it is heard of here.
        self._known: dict[str, dict[str, Any]] = {}
        self._chosen: dict[Any, None] = {}
        mark = new_mark()
        self._table = _Table(
            self._titles,
            {name: width for name, (_, width) in columns.items()},
            mark=mark,
            formatters=dict.fromkeys([*self._drawn, *linked], "html"),
            selectable="checkbox" if selectable else False,
            sortable={name: name in self._sortable for name in self._titles},
        )
        self._keys = TableKeys(
            on_open=self.open,
            on_note=self.note,
            on_select=self._select_shown,
            on_turn=lambda by: self.turn_to(self.page + by),
            mark=mark,
            label=what,
            id_field=_ID_FIELD,
            sortable=[name for name in self._titles if name in self._sortable],
        )
        self._table.on_click(self._on_click)
        self._pages = pmui.Pagination(count=1, value=0, show_first_button=True, size="small")
        super().__init__()
        self._count = pn.pane.HTML("", margin=(5, 10), align="center", styles={"font-size": TEXT})
        self._problem = stack()
        self.refresh = Task(self._refresh, not_loaded(what), self._problem)
        foot = pn.Row(self._pages, self._count)
        self._box = stack(self._problem, self._table, self._keys, foot)

    @property
    def rows(self) -> pl.DataFrame:
        """The page that is shown."""
        return self._rows

    def turn_to(self, page: int) -> None:
        """Show a page, from 0."""
        last = max(0, math.ceil(self.total / self._page_size) - 1)
        self._pages.value = min(max(page, 0), last)

    @property
    def page(self) -> int:
        """The page that is shown, from 0."""
        return int(self._pages.value or 0)

    @property
    def has_failed(self) -> bool:
        """Whether the page that was asked for last could not be loaded."""
        return bool(self._problem.objects)

    def select(self, ids: Sequence[Any]) -> None:
        """Select rows by their ids, of this page or another, in the place of those before."""
        self._chosen = dict.fromkeys(ids)
        self._draw_selection()
        self.selected = tuple(self._chosen)

    def mark(self, id_: Any) -> None:
        """Mark a row as the one that is open, by its id; ``None`` marks none."""
        self._keys.current = "" if id_ is None else str(id_)

    @property
    def marked(self) -> str:
        """Id of the row that is marked, as text; empty for none."""
        return str(self._keys.current)

    def focus(self) -> None:
        """Put the focus on a row: the marked one, the one that had it before, or the first."""
        self._keys.n_focus += 1

    def on_key(self, action: str) -> bool:
        """Go into the rows or turn pages with the keys of rows; return whether there was a use."""
        if action in ("next", "previous") and self._on_close is not None:
            self.step(1 if action == "next" else -1)
        elif action in ("next", "previous"):
            self.focus()
        elif action == "close" and self._on_close is not None and self.marked:
            self._on_close()
        elif action in ("back", "forward"):
            self.turn_to(self.page + (1 if action == "forward" else -1))
        else:
            return False
        return True

    def step(self, by: int) -> None:
        """Open the row after the marked one, or before it; within the page."""
        keys = [str(id_) for id_ in _ids(self._rows, self._id)]
        if keys:
            here = keys.index(self.marked) if self.marked in keys else -1
            self.open(keys[min(max(here + by, 0), len(keys) - 1)])

    def open(self, key: str) -> None:
        """Open a row by the text of its id, as a click on it does."""
        row = self._known.get(key)
        if self._on_open is not None and row is not None:
            self._on_open(row)

    def note(self, key: str) -> None:
        """Ask for a note on a row by the text of its id."""
        row = self._known.get(key)
        if self._on_note is not None and row is not None:
            self._on_note(row)

    async def restart(self) -> None:
        """Show the first page again after the source has changed."""
        self._chosen = {}
        self.selected = ()
        self._to_first()
        await self.refresh()

    async def _refresh(self) -> None:
        sort = tuple(
            (sorter["field"], sorter["dir"] == "desc")
            for sorter in self._table.sorters
            if sorter["field"] in self._sortable
        )
        request = PageRequest(self.page * self._page_size, self._page_size, sort)
        page = await asyncio.to_thread(self._fetch, request)
        await until_shown()
        self._problem[:] = []
        self._fill(page)

    def _fill(self, page: TablePage) -> None:
        import pandas as pd

        new_rows = page.rows
        if not new_rows.width:
            new_rows = pl.DataFrame({name: [] for name in (self._id, *self._titles)})
        of_both = (self._rows, new_rows)
        self._known = {
            str(row[self._id]): row for rows in of_both for row in rows.iter_rows(named=True)
        }
        self._rows = new_rows
        self.total = page.total
        ids = _ids(new_rows, self._id)
        visible_rows = new_rows.select(list(self._titles)).to_pandas()
        for name, draw in self._drawn.items():
            visible_rows[name] = [draw(value) for value in new_rows[name].to_list()]
        if self._address is not None:
            lead = next(iter(self._titles))
            visible_rows[lead] = [
                f'<a href="{html.escape(self._address(row))}">{html.escape(row[lead])}</a>'
                for row in new_rows.iter_rows(named=True)
            ]
        visible_rows.index = pd.Index([str(id_) for id_ in ids], name=_ID_FIELD)
        # Assigning answers with events of its own; they are not the person's.
        self._is_filling = True
        try:
            self._table.value = visible_rows
            self._draw_selection()
            self._pages.count = max(1, math.ceil(page.total / self._page_size))
        finally:
            self._is_filling = False
        first = self.page * self._page_size
        self._count.object = (
            f"{first + 1:,} to {first + len(ids):,} of {page.total:,}" if ids else "No rows"
        )

    def _to_first(self) -> None:
        """Turn to the first page, which is for the caller to fetch."""
        self._is_filling = True
        self._pages.value = 0
        self._is_filling = False

    @param.depends("_table.sorters", watch=True)
    def _on_sort(self) -> None:
        if not self._is_filling:
            self._to_first()
            self.refresh.start()

    @param.depends("_pages.value", watch=True)
    def _on_page(self) -> None:
        if not self._is_filling:
            self.refresh.start()

    def _on_click(self, event: Any) -> None:
        """Open a row that was clicked before there were keys, when no page had overtaken another."""
        if not self._keys.is_ready and 0 <= event.row < self._rows.height:
            self.open(str(self._rows[self._id][event.row]))

    def _draw_selection(self) -> None:
        ids = _ids(self._rows, self._id)
        self._table.selection = [place for place, id_ in enumerate(ids) if id_ in self._chosen]

    def _select_shown(self, visible_ids: list[str], selected_ids: list[str]) -> None:
        """Select rows by their place among the rows on the page."""
        for id_ in self._ids_of(visible_ids):
            self._chosen.pop(id_, None)
        self._chosen.update(dict.fromkeys(self._ids_of(selected_ids)))
        self._draw_selection()
        self.selected = tuple(self._chosen)

    def _ids_of(self, keys: Sequence[str]) -> list[Any]:
        return [self._known[key][self._id] for key in keys if key in self._known]


def _card_names(titles: Mapping[str, str], lead: str) -> str:
    """Return the styles of a phone's cards: the widest column leads, the others have their header."""
    cell = ".tabulator .tabulator-row .tabulator-cell[tabulator-field={}]"
    look = f"display: block; font-size: {SMALL}; color: {token('muted')}"
    names = "\n".join(
        f"{cell.format(json.dumps(field))}::before {{ content: {json.dumps(title)}; {look} }}"
        for field, title in titles.items()
        if field != lead
    )
    first = f"{cell.format(json.dumps(lead))} {{ order: -1; flex-basis: 100%; }}"
    return f"@media (max-width: 599px) {{ {first}\n{names} }}"


def _draw_wrapped(text: str) -> str:
    """Return a text as HTML on up to two lines."""
    return f'<div class="two-lines">{html.escape(text)}</div>'


def _draw_chips(chips: Sequence[str | Mapping[str, str]]) -> str:
    """Return chips as HTML.

    >>> _draw_chips(["team: <b>"])
    '<div class="chips"><span class="chip">team: &lt;b&gt;</span></div>'
    """
    drawn = ""
    for chip in chips:
        of = {"text": chip} if isinstance(chip, str) else chip
        style = f' style="--c:{of["colour"]}"' if of.get("colour") else ""
        title = f' title="{html.escape(of["title"])}"' if of.get("title") else ""
        drawn += f'<span class="chip"{style}{title}>{html.escape(of["text"])}</span>'
    return f'<div class="chips">{drawn}</div>'


def _ids(rows: pl.DataFrame, column: str) -> list[Any]:
    return rows[column].to_list() if rows.width else []
