"""How much of a file was moved, shown on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.client.row_sources import Progress


@contextmanager
def bytes_bar(title: str, total: int | None = None) -> Iterator[Progress]:
    """Yield a function that takes the bytes moved so far; ``total`` is ``None`` where it is unknown."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        task = bars.add_task(title, total=total)
        yield lambda n_bytes: bars.update(task, completed=n_bytes)
