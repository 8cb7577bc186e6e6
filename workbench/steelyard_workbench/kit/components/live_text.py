"""A text that is read out when it changes, to those who do not see the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import param
from panel.custom import JSComponent


class LiveText(JSComponent):
    """A live region of one line; ``text`` is the last event, such as ``row 12 of 403, deny``."""

    text = param.String(default="")

    _esm = Path(__file__).with_suffix(".js")

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (2, 10), **options})
