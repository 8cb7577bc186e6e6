"""Files that the browser sends, and those that it gets."""

from __future__ import annotations

import asyncio
import functools
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from steelyard.client.row_sources import Progress
from steelyard.errors import PayloadTooLargeError
from steelyard.wire.queries import ExportFormat
from steelyard_workbench.kit.basics import Boxed
from steelyard_workbench.kit.problems import not_loaded, problem_of
from steelyard_workbench.kit.views import failed

#: Bytes of a file that a browser is handed: they pass through the memory of this process.
MOST_BYTES = 256 * 1024 * 1024
_TITLES: dict[ExportFormat, tuple[str, str]] = {
    "csv": ("Download CSV", "csv"),
    "parquet": ("Download Parquet", "parquet"),
    "hf": ("Download for Hugging Face", "zip"),
}


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


class Download(Boxed):
    """A button for a file; ``fetch`` returns its bytes, in a thread."""

    def __init__(self, label: str, fetch: Callable[[], bytes], filename: Callable[[], str]) -> None:
        super().__init__()
        self._label, self._fetch, self._filename = label, fetch, filename
        self.problem = pn.Column()
        # No subclass of it: panel-material-ui's bundle knows its own classes alone.
        self.button = pmui.FileDownload(
            label=label, callback=self.get, filename=filename(), auto=True
        )
        # Given to the constructor it warns of a parameter that Panel sets itself.
        self.button.variant = "outlined"
        hand_over = self.button._sync_data
        self.button._sync_data = lambda file: None if file is None else hand_over(file)
        self._box = pn.Column(self.button, self.problem)

    async def get(self) -> io.BytesIO | None:
        """Fetch the file; a failure is shown beside the button, and ``None`` is returned."""
        self.problem[:] = []
        # What is chosen on the page while the file is fetched is not of this file.
        name = self._filename()
        try:
            data = await asyncio.to_thread(self._fetch)
        except Exception as error:  # noqa: BLE001  every failure is shown
            problem = problem_of(error, not_loaded("The file"))
            self.button.disabled = problem.is_forbidden
            self.problem[:] = [failed(problem)]
            return None
        self.button.filename = name
        return io.BytesIO(data)


def bounded(save: Callable[[Path, Progress], object], name: str, otherwise: str) -> bytes:
    """Return the bytes of a file that is saved to the disk first, up to a bound; blocks.

    ``save`` takes a path and a callback for the bytes so far, and writes the file there. ``name`` is
    the file's; its ending matters to some. ``otherwise`` is the remedy where it has too many bytes.
    Raise ``PayloadTooLargeError`` when it has more than ``MOST_BYTES``.
    """

    def check(n_bytes: int) -> None:
        if n_bytes > MOST_BYTES:
            size = f"{MOST_BYTES // 1024 // 1024} MiB"
            raise PayloadTooLargeError(
                f"The file has more than {size}, too many for a browser; {otherwise}"
            )

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / name
        save(place, check)
        return place.read_bytes()


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
