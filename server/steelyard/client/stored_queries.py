"""Stored answers that a model was unsure of, as queries to be labelled."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.client import Client

#: The most queries of a source.
MAX_QUERIES = 10_000


def unsure_queries(
    client: Client,
    *,
    window_s: float,
    unsure: float,
    model: str | None = None,
    decision: str | None = None,
    limit: int = MAX_QUERIES,
    on_query: Callable[[int], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Return stored requests without feedback whose top probability was at most a bound.

    The newest first; each context with its decisions once. ``on_query`` is called with how many
    there are by now.
    """
    queries: dict[str, dict[str, Any]] = {}
    cursor = None
    while len(queries) < limit:
        page = client.decision_log(
            since=time.time() - window_s,
            p_to=unsure,
            has_feedback=False,
            model=model,
            decision=decision,
            cursor=cursor,
        )
        for item in page.data:
            request = client.stored_decision(item.id).request
            if "context" not in request:  # its text is not stored
                continue
            query = {"context": request["context"], "decisions": request["decisions"]}
            queries.setdefault(json.dumps(query), {**query, "metadata": {"decision": item.id}})
            on_query(len(queries))
            if len(queries) == limit:
                break
        cursor = page.next_cursor
        if not page.has_more or cursor is None:
            break
    return list(queries.values())
