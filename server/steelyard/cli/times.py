"""Times from the command line."""

from __future__ import annotations

import datetime as dt


def seconds_of(at: dt.datetime | None) -> float | None:
    """Return a time without a zone, which is UTC, in Unix seconds."""
    return None if at is None else at.replace(tzinfo=dt.UTC).timestamp()
