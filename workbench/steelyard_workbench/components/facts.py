"""Small static tables and lists of facts: plain HTML that a screen reader reads as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.escaping import escape_markdown
from steelyard_workbench.theme import HEADING, TEXT

_TABLE = f"border-collapse:collapse;width:100%;font-size:{TEXT}"
_CELL = (
    "text-align:left;padding:0.3em 0.8em 0.3em 0;vertical-align:top;"
    "border-bottom:1px solid rgba(128,128,128,0.3)"
)


#: A word of more characters is broken where its column is narrow; others stay whole.
_LONGEST_WORD = 24


def heading(text: str, level: int = 2) -> Viewable:
    """Return a heading under that of the page; its text is escaped."""
    return pmui.Typography(
        escape_markdown(text),
        variant=f"h{level}",
        sx={"fontSize": HEADING, "fontWeight": 600, "marginTop": "0.8em"},
    )


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    label: str,
    numbers: Sequence[int] = (),
) -> Viewable:
    """Return a table of texts, every one escaped."""
    sides = [
        f"{_CELL};text-align:right;font-variant-numeric:tabular-nums" if i in numbers else _CELL
        for i in range(len(columns))
    ]
    head = "".join(
        f'<th scope="col" style="{side}">{escape(name)}</th>'
        for name, side in zip(columns, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{side}{_wrapped(cell)}">{escape(cell)}</td>'
            for cell, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return pn.pane.HTML(
        f'<table aria-label="{escape(label)}" style="{_TABLE}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>",
        sizing_mode="stretch_width",
    )


def facts(values: Mapping[str, str]) -> Viewable:
    """Return names with their values, every one escaped."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};width:14em">{escape(name)}</th>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{escape(value)}</td></tr>'
        for name, value in values.items()
    )
    return pn.pane.HTML(
        f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>', sizing_mode="stretch_width"
    )


def _wrapped(text: str) -> str:
    longest = max(map(len, text.split()), default=0)
    return ";overflow-wrap:anywhere" if longest > _LONGEST_WORD else ""
