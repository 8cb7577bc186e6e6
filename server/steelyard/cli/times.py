"""Times from the command line."""

from __future__ import annotations

import datetime as dt
from typing import Any

import click


class _UtcTime(click.DateTime):
    """A time without a zone, which is UTC, in Unix seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        time: dt.datetime = super().convert(value, param, ctx)
        return time.replace(tzinfo=dt.UTC).timestamp()


UTC_TIME = _UtcTime()
