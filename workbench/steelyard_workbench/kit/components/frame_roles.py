"""Names and roles that the frame of panel-material-ui lacks, for those who do not see it."""

from __future__ import annotations

from pathlib import Path

from steelyard_workbench.kit.components.in_frame import WHEN_FRAMED
from steelyard_workbench.kit.components.unseen import Unseen


class FrameRoles(Unseen):
    """Names the parts of the page's frame: its menu, its bar of progress, and its resizer."""

    _esm = WHEN_FRAMED + Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
