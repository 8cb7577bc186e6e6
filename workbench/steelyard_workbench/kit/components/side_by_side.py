"""Parts beside each other, or under each other where there is no room: two, or fields of numbers."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.components.unseen import IntoView, StepNames

#: Pixels that the first part has at least while the second is beside it.
LEAST_WIDTH = 380
#: Panel's columns have a button to scroll with, which takes its width while all else is closed.
_NO_SCROLL_BUTTON = ".scroll-button { display: none; }"


def side_by_side(
    first: Any, second: Any, *, least_width: int = LEAST_WIDTH, share: float = 1
) -> Viewable:
    """Put a part beside one ``share`` times as wide; under it below ``least_width`` pixels of that."""
    room = {"flex": f"{share} 1 {least_width}px", "min-width": "0", "width": "auto"}
    beside = {**room, "flex": f"1 1 {least_width / share:.0f}px"}
    if getattr(second, "sizing_mode", None) == "stretch_width":
        second = stack(second, styles=beside)
    elif not getattr(second, "visible", True):
        second = pn.Column(IntoView(), second, stylesheets=[_NO_SCROLL_BUTTON])
    return pn.Row(
        stack(first, styles=room), second, sizing_mode="stretch_width", styles={"flex-wrap": "wrap"}
    )


def number_fields(*parts: Viewable, align_items: str = "flex-start") -> Viewable:
    """Return parts in a row; the buttons of those that are fields of numbers have names."""
    n = sum(isinstance(part, pmui.FloatInput | pmui.IntInput) for part in parts)
    return pn.FlexBox(*parts, StepNames(n=n), align_items=align_items)
