"""How a command fails: what it says on the error stream, and its exit status."""

from __future__ import annotations

from collections.abc import Sequence

import click

from steelyard.cli.terminal import printable
from steelyard.errors import SteelyardError

FAILED = 1
REFUSED = 2
UNAVAILABLE = 3

#: A longer list would scroll its beginning away.
_SHOWN_VIOLATIONS = 20


def exit_status(error: Exception) -> int:
    """Give 3 when the engine is not available, 2 when the input cannot be used, else 1."""
    if not isinstance(error, SteelyardError):
        return REFUSED
    if error.status in {503, 504}:
        return UNAVAILABLE
    return REFUSED if 400 <= error.status < 500 else FAILED


def show_failure(error: Exception) -> None:
    """Say on the error stream what failed, where, and what to change."""
    if not isinstance(error, SteelyardError):
        click.echo(f"Error: {error}", err=True)
        return
    violations = getattr(error, "violations", ())
    if not violations:
        click.echo(f"Error ({error.code}): {printable(error.message)}", err=True)
        # What was done before it failed, such as the rows that a dataset has already.
        for note in getattr(error, "__notes__", ()):
            click.echo(f"  {printable(note)}", err=True)
        return
    click.echo(f"Error ({error.code}): the request cannot be used.", err=True)
    for violation in violations[:_SHOWN_VIOLATIONS]:
        line = f"{path_text(violation.path)}: {violation.message}"
        click.echo(f"  {printable(line)}", err=True)
    if len(violations) > _SHOWN_VIOLATIONS:
        click.echo(f"  and {len(violations) - _SHOWN_VIOLATIONS} more", err=True)


def path_text(path: Sequence[str | int]) -> str:
    """Write a path as ``decisions[0].outcomes``, without the leading ``body``."""
    parts = path[1:] if path and path[0] == "body" else path
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text or "request"
