"""Small static tables and lists of facts: plain HTML that a screen reader reads as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import panel as pn
from panel.viewable import Viewable, Viewer

from steelyard_workbench.kit.basics import action_button, html_pane, stack
from steelyard_workbench.kit.look import CARD_CSS, CELL_CSS, TABLE_CSS, Drawn
from steelyard_workbench.kit.terms import term_of
from steelyard_workbench.kit.theme import HEADING, IN_CARD, TEXT, token

#: A word of more characters is broken where its column is narrow; others stay whole.
_LONGEST_WORD = 24
_GRID_CSS = """
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 16px; }
.grid .card { padding: 16px; }
.grid .note::first-letter { text-transform: uppercase; }
"""
FRAME = {
    **IN_CARD,
    "border": f"1px solid {token('line')}",
    "border-radius": "8px",
    "background": token("surface"),
    "padding": "14px",
    "box-sizing": "border-box",
}


def heading(text: str, level: int = 2) -> Viewable:
    """Return a heading under that of the page; its text is escaped."""
    size = HEADING if level == 2 else TEXT
    # Plain HTML: a React root for each costs a browser milliseconds.
    return html_pane(
        f'<h{level} style="font-size:{size};font-weight:700;line-height:1.25;'
        f'margin:0.8em 0 0">{escape(text)}</h{level}>',
        margin=(5, 10),
    )


def unseen_heading(text: str) -> Viewable:
    """Return a heading for screen readers, over parts that need none for the eye."""
    style = "position:absolute;clip-path:inset(50%);height:1px;overflow:hidden;margin:0"
    return pn.pane.HTML(f'<h2 style="{style}">{escape(text)}</h2>', margin=0, height=0)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    label: str,
    numbers: Sequence[int] = (),
) -> Viewable:
    """Return a table of texts, every one escaped; of ``Drawn`` cells behind the first too."""
    head = "".join(
        f'<th scope="col"{_class(i in numbers)}>{_word(name)}</th>'
        for i, name in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{escape(name)}"{_class(i in numbers, cell)}>{_word(cell) if i == 0 else _cell(cell)}</td>'
            for i, (name, cell) in enumerate(zip(columns, row, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    return html_pane(
        f'<table class="cards" aria-label="{escape(label)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>",
        CELL_CSS if any(isinstance(cell, Drawn) for row in rows for cell in row) else "",
        TABLE_CSS,
    )


def _cell(text: str) -> str:
    return text if isinstance(text, Drawn) else escape(text)


def facts(values: Mapping[str, str], terms: Mapping[str, str] | None = None) -> Viewable:
    """Return names with their values, all escaped; ``terms`` are shown where a pointer rests on one."""
    titles = terms or {}
    rows = "".join(
        f'<tr><th scope="row" style="width:18em">{_word(name, titles.get(name, ""))}</th>'
        f'<td class="long">{escape(value)}</td></tr>'
        for name, value in values.items()
    )
    return html_pane(f"<table><tbody>{rows}</tbody></table>", TABLE_CSS)


def _word(text: str, term: str = "") -> str:
    """Return a text escaped, with the exact term for it where there is one."""
    term = term or term_of(text)
    return f'<abbr title="{escape(term)}">{escape(text)}</abbr>' if term else escape(text)


def _class(is_number: bool, text: str = "") -> str:
    longest = max(map(len, text.split()), default=0)
    names = [*(["number"] if is_number else []), *(["long"] if longest > _LONGEST_WORD else [])]
    return f' class="{" ".join(names)}"' if names else ""


def cards(figures: Sequence[tuple[str, str, str]]) -> Viewable:
    """Return cards beside each other: of each the name, the value and a note."""
    drawn = "".join(
        f'<div class="card"><div class="note" title="{escape(term_of(name))}">{escape(name)}</div>'
        f'<div class="figure">{escape(value)}</div><div class="note">{escape(note)}</div></div>'
        for name, value, note in figures
    )
    return html_pane(f'<div class="grid">{drawn}</div>', CARD_CSS, _GRID_CSS, margin=(5, 10))


def card(*parts: Viewable) -> Viewable:
    """Return parts under each other in a frame of their own."""
    return stack(*parts, margin=(6, 10), styles=FRAME)


def behind_button(label: str, form: Viewable | Viewer) -> list[Viewable]:
    """Return a button, and a form that it shows and hides: on a page that begins with its result."""
    box = stack(form, visible=False)
    button = action_button(
        label, lambda _: box.param.update(visible=not box.visible), variant="contained"
    )
    return [button, box]
