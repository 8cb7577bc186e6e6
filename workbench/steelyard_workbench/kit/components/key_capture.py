"""Keys pressed anywhere on the page, but for those typed into a field."""

from __future__ import annotations

from pathlib import Path

import param

from steelyard_workbench.kit.components.unseen import Unseen


class KeyCapture(Unseen):
    """Sends which keys are pressed: each is a message to ``on_msg``, ``{"key"}``."""

    watched = param.List(default=[], item_type=str)
    # Panel loses changes by a key on a page that is still being drawn.
    is_ready = param.Boolean(default=False)

    _esm = Path(__file__).with_suffix(".js")
