"""The keys of a table: Tab goes to its headers and into its rows, arrows from row to row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import param

from steelyard_workbench.kit.components.unseen import Unseen
from steelyard_workbench.kit.look import with_tokens
from steelyard_workbench.kit.theme import FOCUS, SMALL, TEXT

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

    _esm = Path(__file__).with_suffix(".js")

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
