"""Cards: figures with their name and a note, and parts that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from panel.viewable import Viewable, Viewer

from steelyard_workbench.kit.basics import action_button, html_pane, stack
from steelyard_workbench.kit.look import CARD_CSS
from steelyard_workbench.kit.terms import term_of
from steelyard_workbench.kit.theme import IN_CARD, token

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
