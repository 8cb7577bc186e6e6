"""Rows of webhooks and of their deliveries.

A delivery that is being sent belongs to one opening of the state, its runner, and is sent again once
that is no longer alive: each arrives at least once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from steelyard.outbox.names import TEST
from steelyard.outbox.tables import webhook_deliveries, webhooks
from steelyard.storage import State
from steelyard.storage.pages import OrderedPage
from steelyard.storage.rows import Rows
from steelyard.storage.statements import Statement
from steelyard.webhooks.tries import next_wait_s, why_off
from steelyard.webhooks.wire import DeliveriesQuery

WEBHOOKS = Rows(webhooks)
DELIVERIES = Rows(webhook_deliveries, owner="webhook_id")

#: Deliveries of one webhook that are sent at a time, and of one whose last try failed.
AT_ONCE, AT_ONCE_FAILING = 4, 1
#: Deliveries of one account that are sent at a time: half of a process's places.
AT_ONCE_OF_ACCOUNT = 16
#: Seconds for which a delivery that has ended is kept.
STORED_S = 30 * 86_400.0
_AT_ONCE_SWEPT = 500
_OFF = "Given up: the webhook was switched off."


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOutcome:
    """The outcome of one try."""

    status: int | None = None
    response: str | None = None
    error: str | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the endpoint took it."""
        return self.error is None


def count_waiting(connection: sa.Connection, webhook_id: str) -> int:
    """Return how many deliveries wait for a webhook."""
    counted = sa.select(sa.func.count()).where(
        webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.status == "waiting"
    )
    return connection.execute(counted).scalar_one()


def switch_off(connection: sa.Connection, webhook_id: str, reason: str, at: float) -> None:
    """Switch a webhook off and cancel its waiting deliveries; one that is being sent ends by itself."""
    WEBHOOKS.change(connection, webhook_id, disabled_at=at, disabled_reason=reason, updated_at=at)
    connection.execute(
        sa.update(webhook_deliveries)
        .where(
            webhook_deliveries.c.webhook_id == webhook_id,
            webhook_deliveries.c.status == "waiting",
        )
        .values(status="failed", ended_at=at, error=_OFF)
    )


def page_of_deliveries(
    connection: sa.Connection, webhook_id: str, query: DeliveriesQuery
) -> OrderedPage:
    """Return a page of a webhook's deliveries, the newest first."""
    where = [webhook_deliveries.c.status.in_(query.status)] if query.status else ()
    return DELIVERIES.page(
        connection, webhook_id, where=where, limit=query.limit, cursor=query.cursor
    )


def _heads(now: float | sa.BindParameter[float]) -> sa.Select[Any]:
    """Return due deliveries: of each subject the earliest event, whatever waits behind it.

    Of a webhook no more than may be sent at a time, beside those being sent.
    """
    waiting = webhook_deliveries.c.status == "waiting"
    firsts = (
        sa.select(sa.func.min(webhook_deliveries.c.number))
        .where(waiting)
        .group_by(webhook_deliveries.c.webhook_id, webhook_deliveries.c.subject)
    )
    due = (
        sa.select(
            webhook_deliveries.c.number,
            webhook_deliveries.c.id,
            webhook_deliveries.c.webhook_id,
            webhook_deliveries.c.runner,
            webhooks.c.account_id,
            webhooks.c.failing_since,
            sa.func.row_number()
            .over(
                partition_by=webhook_deliveries.c.webhook_id,
                order_by=(webhook_deliveries.c.runner.is_(None), webhook_deliveries.c.number),
            )
            .label("place"),
        )
        .join(webhooks)
        .where(
            webhook_deliveries.c.number.in_(firsts),
            webhook_deliveries.c.next_at <= now,
            webhooks.c.disabled_at.is_(None),
        )
        .subquery()
    )
    bounded = sa.select(due).where(due.c.place <= 2 * AT_ONCE)
    # What fails waits behind what does not, and takes no place of its account's from it.
    return bounded.order_by(due.c.failing_since.is_not(None), due.c.number)


#: Asked every second by every server, as a rule in vain.
_FIRST_DUE = Statement(_heads(sa.bindparam("now")).limit(1))


def has_due(connection: sa.Connection, now: float, sending: Collection[str]) -> bool:
    """Return whether there may be a due delivery beside those being sent here."""
    first = _FIRST_DUE.first(connection, {"now": now})
    if first is None or not sending:
        return first is not None
    due = _heads(now).limit(len(sending) + 1)
    return any(row.id not in sending for row in connection.execute(due))


def claim(
    connection: sa.Connection,
    state: State,
    *,
    now: float,
    sending: Collection[str],
    places: int,
    failing_places: int,
) -> Sequence[sa.Row[Any]]:
    """Claim due deliveries that no process is sending; ``sending`` are those of this process.

    Those of accounts of which least is being sent go first, and failing deliveries last.
    """

    def is_sent(row: sa.Row[Any]) -> bool:
        if row.runner is None or row.id in sending:
            return row.runner is not None
        return row.runner != state.instance and state.is_alive(connection, row.runner)

    of_webhook, of_account = Counter[str](), Counter[str]()
    free = []
    for row in connection.execute(_heads(now)):
        if is_sent(row):
            of_webhook[row.webhook_id] += 1
            of_account[row.account_id] += 1
        else:
            free.append(row)
    in_turn: list[tuple[bool, int, int]] = []
    for row in free:
        is_failing = row.failing_since is not None
        at_once = AT_ONCE_FAILING if is_failing else AT_ONCE
        before = of_account[row.account_id]
        if of_webhook[row.webhook_id] < at_once and before < AT_ONCE_OF_ACCOUNT:
            of_webhook[row.webhook_id] += 1
            of_account[row.account_id] += 1
            in_turn.append((is_failing, before, row.number))
    taken: list[int] = []
    n_failing = 0
    for is_failing, _, number in sorted(in_turn):
        if len(taken) < places and not (is_failing and n_failing >= failing_places):
            n_failing += is_failing
            taken.append(number)
    if not taken:
        return []
    numbered = webhook_deliveries.c.number.in_(taken)
    connection.execute(sa.update(webhook_deliveries).where(numbered).values(runner=state.instance))
    return connection.execute(
        sa.select(
            webhook_deliveries,
            webhooks.c.url,
            webhooks.c.secret,
            webhooks.c.old_secret,
            webhooks.c.old_until,
            webhooks.c.failing_since,
        )
        .join(webhooks)
        .where(numbered)
    ).all()


def record(
    connection: sa.Connection, sent: sa.Row[Any], outcome: TryOutcome, *, at: float, chance: float
) -> None:
    """Write the outcome of a try: delivered, waiting for the next, or cancelled."""
    attempts = sent.attempts + 1
    wait_s = None if outcome.is_delivered else next_wait_s(sent.event, attempts, chance)
    ended = {"status": "delivered" if outcome.is_delivered else "failed", "ended_at": at}
    is_ours = connection.execute(
        sa.update(webhook_deliveries)
        .where(
            webhook_deliveries.c.number == sent.number,
            # Given up meanwhile, it is delivered all the same.
            webhook_deliveries.c.status.in_(
                ("waiting", "failed") if outcome.is_delivered else ("waiting",)
            ),
            webhook_deliveries.c.attempts == sent.attempts,
        )
        .values(
            attempts=attempts,
            runner=None,
            response_status=outcome.status,
            response=outcome.response,
            error=outcome.error,
            **(ended if wait_s is None else {"next_at": at + wait_s}),
        )
    )
    if is_ours.rowcount == 0:
        return
    if outcome.is_delivered:
        if sent.failing_since is not None:
            WEBHOOKS.change(connection, sent.webhook_id, failing_since=None)
    elif sent.event != TEST:
        _note_failure(connection, sent.webhook_id, outcome, at)


def _note_failure(
    connection: sa.Connection, webhook_id: str, outcome: TryOutcome, at: float
) -> None:
    webhook = connection.execute(sa.select(webhooks).where(webhooks.c.id == webhook_id)).first()
    if webhook is None or webhook.disabled_at is not None:
        return
    since = at if webhook.failing_since is None else webhook.failing_since
    if webhook.failing_since is None:
        WEBHOOKS.change(connection, webhook_id, failing_since=at)
    n_waiting = count_waiting(connection, webhook_id)
    reason = why_off(outcome.status, at - since, n_waiting, outcome.error)
    if reason is not None:
        switch_off(connection, webhook_id, reason, at)


def sweep_deliveries(state: State, now: Callable[[], float]) -> None:
    """Remove deliveries that ended long ago, some in each transaction; it blocks."""
    ended = webhook_deliveries.c.ended_at < now() - STORED_S
    old = sa.select(webhook_deliveries.c.number).where(ended).limit(_AT_ONCE_SWEPT)
    swept = sa.delete(webhook_deliveries).where(webhook_deliveries.c.number.in_(old))
    while state.write_now(lambda connection: connection.execute(swept).rowcount) == _AT_ONCE_SWEPT:
        pass
