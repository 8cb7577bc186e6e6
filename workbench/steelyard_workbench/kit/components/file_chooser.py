"""A button that takes a file, and tells of one that is empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui


class FileChooser(pmui.FileInput):
    """A button that takes one file; ``on_empty`` is called when an empty one was chosen.

    Browsers send a file in pieces, of which an empty one has none: it would be ignored.
    """

    def __init__(self, on_empty: Callable[[], None], **options: Any) -> None:
        self._on_empty = on_empty
        super().__init__(multiple=False, **options)

    def _update_file(self, filename: Any, mime_type: Any, value: Any) -> None:
        super()._update_file(filename, mime_type, value)
        if not value:
            self._on_empty()
