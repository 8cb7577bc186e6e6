"""Cards: figures with their name and a note, and parts that belong together."""

from __future__ import annotations

from collections.abc import Sequence

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.theme import FIGURE, token

_CARD_PX = 190
FRAME = {
    "border": f"1px solid {token('line')}",
    "border-radius": "8px",
    "background": token("surface"),
    "padding": "14px",
    "box-sizing": "border-box",
}
_VALUE = {"fontSize": FIGURE, "fontWeight": 700, "overflowWrap": "anywhere"}


def cards(figures: Sequence[tuple[str, str, str]]) -> Viewable:
    """Return cards beside each other: of each the name, the value and a note."""
    return pn.FlexBox(
        *(
            pmui.Paper(
                pmui.Typography(name, variant="body2", margin=(6, 10, 0, 10)),
                pmui.Typography(value, variant="body1", sx=_VALUE, margin=(0, 10)),
                pmui.Typography(note, variant="body2", margin=(0, 10, 6, 10)),
                width=_CARD_PX,
                margin=0,
            )
            for name, value, note in figures
        ),
        gap="10px",
        align_items="stretch",
        margin=(0, 10),
    )


def card(*parts: Viewable) -> Viewable:
    """Return parts under each other in a frame of their own."""
    return pn.Column(*parts, sizing_mode="stretch_width", margin=(6, 10), styles=FRAME)
