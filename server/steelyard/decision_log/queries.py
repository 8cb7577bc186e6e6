"""Reading many stored answers of an account: pages of them, a window of time, and their feedback.

What was asked is not read here: contexts are long, and lists and figures do without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import Connection, Row, select

from steelyard.decision_log.store import in_window
from steelyard.decision_log.tables import decisions, feedback
from steelyard.storage.pages import after_cursor

#: Rows that a database driver hands over at a time.
_AT_A_TIME = 2_000
#: An answer's ``id``, ``created_at``, ``model``, ``version``, ``total_ms`` and ``results``.
ShortRow: TypeAlias = Row[str, float, str, str | None, float | None, bytes]
_SHORT = (
    decisions.c.id,
    decisions.c.created_at,
    decisions.c.model,
    decisions.c.version,
    decisions.c.total_ms,
    decisions.c.results,
)


def newest_answers(
    connection: Connection,
    account_id: str,
    *,
    since: float,
    until: float | None = None,
    model: str | None = None,
    observed_of: str | None = None,
    is_observed: bool = False,
    after: str | None = None,
    limit: int,
) -> Sequence[ShortRow]:
    """Return stored answers without what was asked, the newest first."""
    where = in_window(account_id, since, until, model)
    if is_observed:
        told = select(feedback.c.name).where(feedback.c.decision_id == decisions.c.id)
        if observed_of is not None:
            told = told.where(feedback.c.name == observed_of)
        where.append(told.exists())
    if after is not None:
        owned = decisions.c.account_id == account_id
        where.append(after_cursor(connection, decisions, owned, after))
    return connection.execute(
        select(*_SHORT)
        .where(*where)
        .order_by(decisions.c.created_at.desc(), decisions.c.id.desc())
        .limit(limit)
    ).all()


def answers_between(
    connection: Connection, account_id: str, *, since: float, until: float, model: str | None = None
) -> Iterator[ShortRow]:
    """Yield every stored answer of a window, in no order, as ``newest_answers`` gives them."""
    where = in_window(account_id, since, until, model)
    streaming = connection.execution_options(yield_per=_AT_A_TIME)
    yield from streaming.execute(select(*_SHORT).where(*where))


def feedback_between(
    connection: Connection, account_id: str, *, since: float, until: float, model: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return what was observed of the answers of a window, by answer and decision id."""
    found = connection.execute(
        select(feedback.c.decision_id, feedback.c.name, feedback.c.outcome)
        .join(decisions, decisions.c.id == feedback.c.decision_id)
        .where(*in_window(account_id, since, until, model))
    )
    return _by_answer(found)


def feedback_of_answers(connection: Connection, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what was observed of some answers, by answer and decision id."""
    if not ids:
        return {}
    found = connection.execute(
        select(feedback.c.decision_id, feedback.c.name, feedback.c.outcome).where(
            feedback.c.decision_id.in_(ids)
        )
    )
    return _by_answer(found)


def _by_answer(rows: Any) -> dict[str, dict[str, Any]]:
    by_answer: dict[str, dict[str, Any]] = {}
    for id_, name, outcome in rows:
        by_answer.setdefault(id_, {})[name] = msgspec.json.decode(outcome)
    return by_answer
