"""Names of the buttons beside a number, which panel-material-ui 0.16 draws as icons alone."""

from __future__ import annotations

from pathlib import Path

import panel as pn
import param
from panel.viewable import Viewable

from steelyard_workbench.components.unseen import Unseen


class StepNames(Unseen):
    """Names the buttons of the number fields that stand beside it."""

    n = param.Integer(default=0, doc="How many fields there are.")

    _esm = Path(__file__).with_suffix(".js")


def number_fields(*fields: Viewable) -> Viewable:
    """Return fields of numbers in a row, whose buttons have names."""
    return pn.FlexBox(*fields, StepNames(n=len(fields)))
