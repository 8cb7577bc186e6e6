"""Progress of long work: in a notebook, or on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from typing import Any

#: Takes how much is done, how much there is, and a word on the state.
Show = Callable[[int, int, str], None]


@contextmanager
def progress_bar(title: str, *, is_shown: bool = True) -> Iterator[Show]:
    """Show a bar for the length of a block, in a notebook or a terminal.

    The yielded function takes the count so far, the whole count, and a word on the state.
    """
    notebook = _notebook() if is_shown else None
    if notebook is not None:
        yield _notebook_bar(notebook, title)
    elif is_shown and sys.stderr is not None and sys.stderr.isatty() and find_spec("rich"):
        with _terminal_bar(title) as show:
            yield show
    else:
        yield lambda done, total, state: None  # noqa: ARG005


def _notebook() -> Any:
    """Return IPython's display module when the code runs in a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return None
    shell = ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython import display  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    return display


def _notebook_bar(display: Any, title: str) -> Show:
    handle = display.display(display.HTML(escape(title)), display_id=True)

    def show(done: int, total: int, state: str) -> None:
        bar = f'<progress value="{done}" max="{max(total, 1)}"></progress>'
        words = f"{escape(title)}: {escape(state)}, {done:,} of {total:,}"
        handle.update(display.HTML(f"{bar} {words}"))

    return show


@contextmanager
def _terminal_bar(title: str) -> Iterator[Show]:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)

        def show(done: int, total: int, state: str) -> None:
            progress.update(task, completed=done, total=total, description=f"{title}: {state}")

        yield show
