"""Write what the guide for coding agents lists of the rooms: their events, errors and routes.

What somebody wrote about an error or a route stays; one that is not there yet is listed with its
docstring or its summary.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.app import rooms
from steelyard.errors import SteelyardError, errors_of, requests
from steelyard.http.access import OPERATIONS
from steelyard.http.routing import Access, Route
from steelyard.outbox.names import EVENTS
from steelyard.room import Room

GUIDE = Path(__file__).resolve().parents[1] / "server" / "steelyard" / "http" / "llms.txt"
_ROW = re.compile(r"^\| (\d{3}) \| (.+?) \| .+ \|$", re.MULTILINE)
_FURTHER = "## Further routes\n\n"
#: The heading before which further routes stand.
_BEFORE = "## Switching from TypeSafe\n"


def with_events(text: str, events: Sequence[str]) -> str:
    """Return a guide with the names of all events."""
    *names, last = (f"`{name}`" for name in events)
    line = f"Events are {', '.join(names)} and {last}."
    head, rest = text[: text.index("Events are `")], text[text.index("Events are `") :]
    begun = head.rpartition("\n")[2]
    after = rest.partition(".\n")[2]
    wrapped = textwrap.wrap(
        begun + line, 118, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )
    return head.removesuffix(begun) + "\n".join(wrapped) + "\n" + after


def with_errors(text: str, errors: Iterable[type[SteelyardError]]) -> str:
    """Return a guide whose table has a row for each error."""
    rows = list(_ROW.finditer(text))
    told = {code for row in rows for code in re.findall(r"`(\w+)`", row[2])}
    for error in errors:
        if error.code not in told:
            first = textwrap.shorten(inspect.getdoc(error) or "", 100).partition(". ")[0]
            last = [row for row in rows if int(row[1]) <= error.status][-1][0]
            line = f"| {error.status} | `{error.code}` | {first.rstrip('.')} |"
            text = text.replace(last, f"{last}\n{line}")
    return text


def with_routes(text: str, routes: Iterable[Route]) -> str:
    """Return a guide that names every route for customers."""
    head, rest = text.split(_BEFORE)
    head = head.partition(_FURTHER)[0]
    named = set(re.findall(r"`(?:[A-Z]+ )?(/[\w./{}-]+)`", head + rest))
    further = [
        f"- `{route.method} {route.path}`: {route.summary}\n"
        for route in routes
        if route.access is not Access.OPERATOR
        and OPERATIONS not in route.tags
        and route.path not in named
    ]
    section = f"{_FURTHER}{''.join(further)}\n" if further else ""
    return f"{head}{section}{_BEFORE}{rest}"


def guide_text(text: str, listed: Sequence[Room]) -> str:
    """Return a guide with the events, errors and routes of rooms."""
    events = {"job.succeeded", "job.failed", "balance.low"}
    events |= {event for room in listed for event in room.events}
    known = [event for event in EVENTS if event in events]
    text = with_events(text, [*known, *sorted(events - set(known))])
    errors = [error for room in listed for error in room.errors]
    text = with_errors(text, [*errors, *errors_of(requests)])
    return with_routes(text, [route for room in listed for route in room.routes])


if __name__ == "__main__":
    GUIDE.write_text(guide_text(GUIDE.read_text(encoding="utf-8"), rooms.ROOMS), encoding="utf-8")
