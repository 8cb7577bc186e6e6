"""Stored answers that a model was unsure of, as queries to be labelled."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from steelyard.errors import NoRowsError

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

    Raises
    ------
    NoRowsError
        Where there are such requests, and of none the text is stored.
    """
    queries: dict[str, dict[str, Any]] = {}
    cursor, n_without_text = None, 0
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
            if "context" not in request:
                n_without_text += 1
                continue
            query = {"context": request["context"], "decisions": request["decisions"]}
            queries.setdefault(json.dumps(query), {**query, "metadata": {"decision": item.id}})
            on_query(len(queries))
            if len(queries) == limit:
                break
        cursor = page.next_cursor
        if not page.has_more or cursor is None:
            break
    if n_without_text and not queries:
        raise NoRowsError(
            f"Such answers are stored without their texts ({n_without_text:,}), so that they cannot be "
            "labelled; take other rows."
        )
    return list(queries.values())
