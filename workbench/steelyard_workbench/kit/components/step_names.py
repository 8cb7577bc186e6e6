"""Names of the buttons beside a number, which panel-material-ui 0.16 draws as icons alone."""

from __future__ import annotations

from pathlib import Path

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard_workbench.kit.components.unseen import Unseen


class StepNames(Unseen):
    """Names the buttons of the number fields that stand beside it."""

    n = param.Integer(default=0, doc="How many fields there are.")

    _esm = Path(__file__).with_suffix(".js")


def number_fields(*parts: Viewable, align_items: str = "flex-start") -> Viewable:
    """Return parts in a row; the buttons of those that are fields of numbers have names."""
    n = sum(isinstance(part, pmui.FloatInput | pmui.IntInput) for part in parts)
    return pn.FlexBox(*parts, StepNames(n=n), align_items=align_items)
