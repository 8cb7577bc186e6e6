"""A search over everything, in a dialog that Ctrl+K opens: only keys are needed."""

from __future__ import annotations

from pathlib import Path

import param

from steelyard_workbench.kit.components.unseen import Unseen


class Finder(Unseen):
    """Sends typed text: ``{"text", "n"}`` of ``on_msg``; ``{"chosen", "n"}`` is the answer."""

    opened = param.Integer(default=0, doc="How often a button opened it.")
    answer = param.Dict(default={}, doc="The number of what was asked, what was found, and a note.")

    _esm = Path(__file__).with_suffix(".js")
