"""The browser's way back: each page is an entry, a selection on it is not."""

from __future__ import annotations

from pathlib import Path

import param

from steelyard_workbench.kit.components.unseen import Unseen


class PageHistory(Unseen):
    """Makes an entry of the browser's history of each page alone, and shows one gone back to."""

    #: What the browser's tab, its history and its bookmarks call the page.
    title = param.String()

    _esm = Path(__file__).with_suffix(".js")
