"""Has the browser keep a session, or forget it: no page writes a cookie that scripts cannot read."""

from __future__ import annotations

from pathlib import Path

import param

from steelyard_workbench.kit.components.unseen import Unseen


class BrowserSession(Unseen):
    """Sends the ticket of ``asked``, and ``{"is_stored"}`` to ``on_msg`` where it does not reload."""

    # One value: separate ones need not come to the browser in that order.
    asked = param.List(default=[], doc="A ticket, and whether to load the page again after it.")

    _esm = Path(__file__).with_suffix(".js")
