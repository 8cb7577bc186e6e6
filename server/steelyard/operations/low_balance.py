"""Telling an account that little credit is left."""

from __future__ import annotations

import time

from sqlalchemy import Connection, select

from steelyard.ledger.money import to_usd
from steelyard.outbox.publishing import publish
from steelyard.outbox.tables import webhook_deliveries, webhooks

_SECONDS_A_DAY = 86_400.0
#: The available nano-USD of an account at which it is warned.
LOW_BALANCE_NANO = 5 * 10**9


def publish_low_balance(
    connection: Connection, account_id: str, *, before_nano: int, after_nano: int
) -> None:
    """Publish that little is available where it just became so; at most once a day."""
    if not after_nano < LOW_BALANCE_NANO <= before_nano:
        return
    query = select(webhook_deliveries.c.id).where(
        webhook_deliveries.c.webhook_id.in_(
            select(webhooks.c.id).where(webhooks.c.account_id == account_id)
        ),
        webhook_deliveries.c.event == "balance.low",
        webhook_deliveries.c.created_at > time.time() - _SECONDS_A_DAY,
    )
    if connection.execute(query.limit(1)).first() is None:
        data = {"available_usd": to_usd(after_nano), "threshold_usd": to_usd(LOW_BALANCE_NANO)}
        publish(connection, account_id, "balance.low", account_id, data)
