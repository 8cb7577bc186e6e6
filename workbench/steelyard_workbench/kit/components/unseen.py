"""A component that is code alone: it takes no room on the page."""

from __future__ import annotations

from typing import Any

from panel.custom import JSComponent


class Unseen(JSComponent):
    """The invisible scripts of a page."""

    __abstract = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **options})
