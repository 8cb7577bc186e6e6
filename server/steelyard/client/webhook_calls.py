"""Calls of the webhook routes: one function a route."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.client.calls import Call, read, remove, segment, write
from steelyard.outbox.names import Event
from steelyard.webhooks.wire import DeletedWebhook, Delivery, DeliveryPage, Webhook, WebhookPage

_WEBHOOKS = "/v1/integrations/webhooks"


def create(
    url: str,
    events: Sequence[Event],
    *,
    description: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Webhook]:
    """Make a webhook. Its ``secret`` is returned here only: ``POST …/webhooks``.

    ``url`` is an ``https://`` address of the public internet, or of a host that the operator lists.
    ``events`` are such as ``["job.succeeded", "job.failed"]``.
    """
    fields = {"url": url, "events": list(events), "description": description}
    return write(_WEBHOOKS, Webhook, fields, key=idempotency_key)


def page(*, page_size: int = 200, cursor: str | None = None) -> Call[WebhookPage]:
    """List webhooks, newest first: ``GET …/webhooks``."""
    return read(_WEBHOOKS, WebhookPage, limit=page_size, cursor=cursor)


def get(webhook_id: str) -> Call[Webhook]:
    """Return a webhook: ``GET …/webhooks/{webhook}``."""
    return read(_path(webhook_id), Webhook)


def change(
    webhook_id: str,
    *,
    url: str | None = None,
    events: Sequence[Event] | None = None,
    description: str | None = None,
    enabled: bool | None = None,
    rotate_secret: bool = False,
    idempotency_key: str | None = None,
) -> Call[Webhook]:
    """Change a webhook; fields left out stay: ``PATCH …/webhooks/{webhook}``.

    Not ``enabled``, it is sent nothing, and waiting events are given up. ``rotate_secret`` makes a
    new ``secret``; for a day, deliveries are signed with both.
    """
    fields = {
        "url": url,
        "events": None if events is None else list(events),
        "description": description,
        "enabled": enabled,
        "rotate_secret": rotate_secret or None,
    }
    return write(_path(webhook_id), Webhook, fields, key=idempotency_key, method="PATCH")


def delete(webhook_id: str, *, idempotency_key: str | None = None) -> Call[DeletedWebhook]:
    """Remove a webhook and its deliveries: ``DELETE …/webhooks/{webhook}``."""
    return remove(_path(webhook_id), DeletedWebhook, key=idempotency_key)


def deliveries_page(
    webhook: str | Webhook,
    *,
    status: str | Sequence[str] | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[DeliveryPage]:
    """List deliveries, newest first: ``GET …/webhooks/{webhook}/deliveries``."""
    path = f"{_path(webhook if isinstance(webhook, str) else webhook.id)}/deliveries"
    return read(path, DeliveryPage, status=status, limit=page_size, cursor=cursor)


def redeliver(
    webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None
) -> Call[Delivery]:
    """Deliver an event once more: ``POST …/deliveries/{delivery}/redeliver``."""
    path = f"{_path(webhook_id)}/deliveries/{segment(delivery_id)}/redeliver"
    return write(path, Delivery, {}, key=idempotency_key)


def send_test(webhook_id: str, *, idempotency_key: str | None = None) -> Call[Delivery]:
    """Send the event ``webhook.test``, in one try: ``POST …/webhooks/{webhook}/test``."""
    return write(f"{_path(webhook_id)}/test", Delivery, {}, key=idempotency_key)


def _path(webhook_id: str) -> str:
    return f"{_WEBHOOKS}/{segment(webhook_id)}"
