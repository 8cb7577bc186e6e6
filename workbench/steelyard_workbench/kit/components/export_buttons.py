"""Buttons that hand over rows as files, one for each format."""

from __future__ import annotations

import functools
from collections.abc import Callable

import panel_material_ui as pmui

from steelyard.wire.queries import ExportFormat
from steelyard_workbench.kit.basics import Boxed
from steelyard_workbench.kit.components.download import Download

_TITLES: dict[ExportFormat, tuple[str, str]] = {
    "csv": ("Download CSV", "csv"),
    "parquet": ("Download Parquet", "parquet"),
    "hf": ("Download for Hugging Face", "zip"),
}


class ExportButtons(Boxed):
    """A button for each format; ``fetch`` returns its bytes, in a thread, ``filename`` a name by ending."""

    def __init__(
        self, fetch: Callable[[ExportFormat], bytes], filename: Callable[[str], str]
    ) -> None:
        super().__init__()
        self.downloads = {
            format_: Download(
                label, functools.partial(fetch, format_), functools.partial(filename, ending)
            )
            for format_, (label, ending) in _TITLES.items()
        }
        self._box = pmui.FlexBox(*self.downloads.values(), align_items="center")
