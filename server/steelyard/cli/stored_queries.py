"""Stored answers that a model was unsure of, as queries to be labelled."""

from __future__ import annotations

import json
import re
import time
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
    found = re.fullmatch(r"(\d{1,5})([hd])", value.strip())
    if found is None or not int(found[1]):
        raise click.BadParameter(f"{value!r} is no time; write hours or days, such as 12h or 30d.")
    return int(found[1]) * _SECONDS[found[2]]


def unsure_queries(
    client: Client,
    *,
    window_s: float,
    unsure: float,
    model: str | None = None,
    decision: str | None = None,
    limit: int = MAX_QUERIES,
) -> list[dict[str, Any]]:
    """Return what was asked where no feedback came and a top probability was at most so high.

    The newest first; each context with its decisions once.
    """
    from steelyard.client.progress import progress_bar

    found: dict[str, dict[str, Any]] = {}
    cursor = None
    with progress_bar("Reading stored answers", is_shown=True) as show:
        while len(found) < limit:
            page = client.decision_log(
                since=time.time() - window_s,
                p_to=unsure,
                has_feedback=False,
                model=model,
                decision=decision,
                cursor=cursor,
            )
            for one in page.data:
                asked = client.stored_decision(one.id).request
                query = {"context": asked["context"], "decisions": asked["decisions"]}
                found.setdefault(json.dumps(query), {**query, "metadata": {"decision": one.id}})
                show(len(found), limit, "unsure")
                if len(found) == limit:
                    break
            cursor = page.next_cursor
            if not page.has_more or cursor is None:
                break
    return list(found.values())
