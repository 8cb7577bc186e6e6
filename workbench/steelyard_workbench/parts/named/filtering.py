"""Other pages filtered to one named decision, and the way back to all."""

from __future__ import annotations

from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import action_button, small_text
from steelyard_workbench.kit.session import Session

#: The view of a page that shows only things of the named decision.
OF_NAMED = "of-decision"


def name_of(session: Session) -> str:
    """Return the named decision that a page is about alone; empty where it shows everything."""
    return str(session.named) if session.view == OF_NAMED else ""


def filter_row(session: Session, refresh: Callable[[], object]) -> Viewable:
    """Show which decision a page is about alone, with a button for everything."""
    name = name_of(session)
    row = pmui.Row(sizing_mode="stretch_width", visible=bool(name))

    def show_all(_: object) -> None:
        session.view = ""
        row.visible = False
        refresh()

    everything = action_button("Show all", show_all, size="small", align="center")
    text = small_text(f"Of the decision {name} alone.", align="center")
    row[:] = [text, everything, pn.Spacer(sizing_mode="stretch_width")]
    return row
