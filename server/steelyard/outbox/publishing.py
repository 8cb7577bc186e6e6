"""Writing an event for every webhook of an account that wants it, in the caller's transaction."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, insert, select

from steelyard.ids import new_id
from steelyard.outbox.names import Event
from steelyard.outbox.tables import webhook_deliveries, webhooks

_WANTING = select(webhooks.c.id, webhooks.c.events).where(
    webhooks.c.account_id == bindparam("account"), webhooks.c.disabled_at.is_(None)
)


def publish(
    connection: Connection, account_id: str, event: Event, subject: str, data: Mapping[str, Any]
) -> None:
    """Write an event for delivery to the account's webhooks that subscribe to it.

    Events of one subject reach each webhook in the order in which they were written. ``data`` holds
    ids, names and figures, and no text that a caller sent to be decided about.
    """
    rows = connection.execute(_WANTING, {"account": account_id})
    wanting = [row.id for row in rows if event in row.events.split()]
    if not wanting:
        return
    now, event_id = time.time(), new_id("evt")
    body = encode_event(event, subject, data, now)
    connection.execute(
        insert(webhook_deliveries),
        [waiting(webhook_id, event_id, event, subject, body, now) for webhook_id in wanting],
    )


def encode_event(event: str, subject: str, data: Mapping[str, Any], at: float) -> bytes:
    """Return the body of an event's delivery."""
    timestamp = dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="milliseconds")
    message = {"type": event, "timestamp": timestamp, "subject": subject, "data": data}
    return msgspec.json.encode(message)


def waiting(
    webhook_id: str, event_id: str, event: str, subject: str, body: bytes, at: float
) -> dict[str, Any]:
    """Return the row of a delivery that was not tried yet."""
    return {
        "id": new_id("whd"),
        "webhook_id": webhook_id,
        "event_id": event_id,
        "event": event,
        "subject": subject,
        "body": body,
        "status": "waiting",
        "attempts": 0,
        "created_at": at,
        "next_at": at,
    }
