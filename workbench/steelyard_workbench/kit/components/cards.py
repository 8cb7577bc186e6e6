"""A figure in a card: its name, its value in large letters, and what belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.theme import TITLE

_CARD_PX = 190
_VALUE = {"fontSize": TITLE, "fontWeight": 600, "overflowWrap": "anywhere"}


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
