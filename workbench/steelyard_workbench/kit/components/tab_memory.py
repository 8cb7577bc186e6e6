"""The memory of a browser's tab across reloads."""

from __future__ import annotations

from pathlib import Path

import param

from steelyard_workbench.kit.components.unseen import Unseen


class TabMemory(Unseen):
    """Keeps a text in the storage of the tab: it is there again after a reload, for this tab only."""

    key = param.String(default="", doc="Its name in the storage.")
    is_lasting = param.Boolean(default=False, doc="Whether every tab has it, and the next visit.")
    text = param.String(default="", doc="What is remembered; empty forgets it.")

    _esm = Path(__file__).with_suffix(".js")
