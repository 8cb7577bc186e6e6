"""Scrolling to a part that opens out of sight."""

from __future__ import annotations

from pathlib import Path

import param

from steelyard_workbench.kit.components.unseen import Unseen


class IntoView(Unseen):
    """Scrolls to the part after it once that is shown, where it would be out of sight; and by ``bring``."""

    n = param.Integer(default=0)

    _esm = Path(__file__).with_suffix(".js")

    def bring(self) -> None:
        """Scroll to the part."""
        self.n += 1
