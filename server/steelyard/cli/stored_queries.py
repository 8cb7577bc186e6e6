"""Stored answers that a model was unsure of, as queries to be labelled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from steelyard.client import Client

#: The most queries of a source.
MAX_QUERIES = 10_000
_SECONDS = {"h": 3_600.0, "d": 86_400.0}


def read_window(context: click.Context, option: click.Parameter, value: str | None) -> float | None:  # noqa: ARG001
    """Return the seconds of a length of time such as ``30d`` or ``12h``; an option's callback."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,5})([hd])", value.strip())
    if match is None or not int(match[1]):
        raise click.BadParameter(f"{value!r} is no time; write hours or days, such as 12h or 30d.")
    return int(match[1]) * _SECONDS[match[2]]


def unsure_queries(
    client: Client, *, limit: int = MAX_QUERIES, **given: Any
) -> list[dict[str, Any]]:
    """Return stored answers as ``client.stored_queries`` does, with a bar."""
    from steelyard.client import stored_queries
    from steelyard.client.progress import progress_bar

    with progress_bar("Reading stored answers", is_shown=True) as show:
        return stored_queries.unsure_queries(
            client, limit=limit, on_query=lambda n: show(n, limit, "unsure"), **given
        )
