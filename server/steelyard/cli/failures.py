"""Failures of a command: the message on the error stream, and the exit status."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from steelyard.cli.terminal import printable
from steelyard.errors import InvalidRequestError, SteelyardError, StorageUnavailableError

FAILED = 1
REFUSED = 2
UNAVAILABLE = 3
#: A shell's exit status of a command that Ctrl-C ends.
INTERRUPTED = 130

#: What the system says of a disk that is full, or that may not be written.
_OF_DISKS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO}

#: A route in a sentence, which ends before the sentence does, and is no address of a server.
_ROUTE = re.compile(
    r"(?<![\w/.:])((?:GET|POST|PUT|PATCH|DELETE) )?/v1/([a-z-]+)((?:/[\w{}.:-]*[\w}])*)"
)
#: The commands of nouns whose names are others, and those whose list is a command.
_NOUNS = {
    "named-decisions": "decision",
    "named-comparisons": "decision",
    "fine-tunes": "job",
    "fine-tuning": "job",
    "families": "family",
    "evaluations": "evaluate",
    "integrations": "webhook",
    "prompt-tuning": "tune",
}
#: What follows a noun's address where its list is not the address itself, and the command's word.
_LISTS = {"": "list", "/jobs": "list", "/webhooks": "list", "/sources": "sources"}
_SHOWN = frozenset(
    {
        "account",
        "alarm",
        "dataset",
        "decision",
        "evaluate",
        "family",
        "job",
        "key",
        "labeling",
        "map",
    }
    | {"model", "route", "tune", "webhook"}
)

#: A longer list would scroll its beginning away.
_SHOWN_VIOLATIONS = 20


def exit_status(error: Exception) -> int:
    """Return 3 when the engine is not available, 2 when the input cannot be used, else 1."""
    if not isinstance(error, SteelyardError):
        return REFUSED
    if error.status in {503, 504}:
        return UNAVAILABLE
    return REFUSED if 400 <= error.status < 500 else FAILED


def without_routes(text: str) -> str:
    """Return a sentence of a server with the command in the place of each route that it names.

    >>> without_routes("There is no dataset 'a'; look at GET /v1/datasets.")
    "There is no dataset 'a'; look at steelyard dataset list."
    >>> without_routes("Answer with POST /v1/drafts/d_1/edits.")
    'Answer with the workbench.'
    """

    def command(match: re.Match[str]) -> str:
        method, noun, rest = match.groups()
        name = _NOUNS.get(noun, noun.removesuffix("s"))
        if name not in _SHOWN:
            return "the workbench"
        words = ["steelyard", name, _LISTS.get(rest, "") if method == "GET " else ""]
        return " ".join(filter(None, words))

    return _ROUTE.sub(command, text)


@contextmanager
def disk_failures() -> Iterator[None]:
    """Raise failures for want of space or permission as errors of ours."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_DISKS:
            raise
        raise StorageUnavailableError(
            f"Cannot use {error.filename or 'a file'}: {error.strerror}. Free space on its disk, or "
            "give the right to write there."
        ) from error


def show_failure(error: Exception) -> None:
    """Write a failed command's error to the error stream: its place, and the remedy."""
    if not isinstance(error, SteelyardError):
        click.echo(f"Error: {without_routes(str(error))}", err=True)
        return
    problems = _problems(error)
    headline = error.message
    if problems and isinstance(error, InvalidRequestError):
        headline = "the request cannot be used."  # its message is the first of them
    click.echo(f"Error ({error.code}): {printable(without_routes(headline))}", err=True)
    for path, message in problems[:_SHOWN_VIOLATIONS]:
        if message == headline:
            continue
        place = "" if message.startswith(path_text(path)) else f"{path_text(path)}: "
        click.echo(f"  {printable(place + without_routes(message))}", err=True)
    if len(problems) > _SHOWN_VIOLATIONS:
        click.echo(f"  and {len(problems) - _SHOWN_VIOLATIONS} more", err=True)
    show_notes(error)


def show_notes(error: BaseException) -> None:
    """Write notes on work done before the failure, such as rows that a dataset has already."""
    for note in getattr(error, "__notes__", ()):
        click.echo(f"  {printable(without_routes(note))}", err=True)


def is_problem(detail: Mapping[str, Any]) -> bool:
    """Return whether a detail describes a problem at one place of a request."""
    return isinstance(detail.get("path"), list | tuple) and isinstance(detail.get("message"), str)


def _problems(error: SteelyardError) -> list[tuple[Sequence[str | int], str]]:
    """Return places and their problems: found here, or reported by a server."""
    violations = [
        (violation.path, violation.message) for violation in getattr(error, "violations", ())
    ]
    problems = [detail for detail in error.details or () if is_problem(detail)]
    return violations or [(problem["path"], problem["message"]) for problem in problems]


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
