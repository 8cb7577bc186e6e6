"""The way past the menu: the first stop of Tab on a page goes to its content."""

from __future__ import annotations

from pathlib import Path

from steelyard_workbench.kit.components.in_frame import WHEN_FRAMED
from steelyard_workbench.kit.components.unseen import Unseen


class SkipLink(Unseen):
    """Puts ``Skip to content`` before the frame of the page."""

    _esm = WHEN_FRAMED + Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
