"""The way to an identity provider: the browser goes there, and comes back with a session."""

from __future__ import annotations

from pathlib import Path

import param

from steelyard_workbench.kit.components.unseen import Unseen


class IdentityVisit(Unseen):
    """Goes with each of ``visits``; sends ``{"message"}`` to ``on_msg`` where that fails."""

    visits = param.Integer(default=0)

    _esm = Path(__file__).with_suffix(".js")
