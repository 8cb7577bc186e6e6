"""Text made safe for a terminal, so that a caller's words move no cursor and hide nothing; progress."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msgspec import UnsetType

    from steelyard.client.row_sources import Progress

#: Categories that move the cursor, reorder or hide text, or have no form of their own.
_UNPRINTABLE = {"Cc", "Cf", "Co", "Cn", "Cs"}
#: The joiners that some scripts, and emoji, are written with.
_JOINERS = {"\u200c", "\u200d"}


def printable(text: str) -> str:
    r"""Return the text with a mark in place of each control character.

    >>> printable("a\x1b[31mb") == "a\N{REPLACEMENT CHARACTER}[31mb"
    True
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(letter) in _UNPRINTABLE and letter not in _JOINERS
        else letter
        for letter in text
    )


def show_warnings(warnings: Iterable[str] | UnsetType | None) -> None:
    """Write the warnings of an answer, where it has any, to the error stream."""
    import click

    for warning in warnings or ():
        click.echo(printable(warning), err=True)


def write_any_text() -> None:
    """Make the output stream accept any text: characters that its encoding lacks are escaped.

    JSON is written as bytes, in UTF-8 whatever the stream's encoding.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


@contextmanager
def progress_bar(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on the error stream; yield a function that takes the number done."""
    import click

    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        done = 0

        def advance(n: int) -> None:
            nonlocal done
            bar.update(n - done)
            done = n

        yield advance


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
