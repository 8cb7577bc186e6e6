"""Calls of the webhook routes: one function a route."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.client.calls import Call
from steelyard.client.routes import if_true, listed, route
from steelyard.outbox.names import Event
from steelyard.webhooks.wire import DeletedWebhook, Delivery, DeliveryPage, Webhook, WebhookPage


@route("POST /v1/integrations/webhooks", Webhook, events=listed)
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


@route("GET /v1/integrations/webhooks", WebhookPage)
def page(*, page_size: int = 200, cursor: str | None = None) -> Call[WebhookPage]:
    """List webhooks, newest first: ``GET …/webhooks``."""


@route("GET /v1/integrations/webhooks/{webhook_id}", Webhook)
def get(webhook_id: str) -> Call[Webhook]:
    """Return a webhook: ``GET …/webhooks/{webhook}``."""


@route(
    "PATCH /v1/integrations/webhooks/{webhook_id}", Webhook, events=listed, rotate_secret=if_true
)
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


@route("DELETE /v1/integrations/webhooks/{webhook_id}", DeletedWebhook)
def delete(webhook_id: str, *, idempotency_key: str | None = None) -> Call[DeletedWebhook]:
    """Remove a webhook and its deliveries: ``DELETE …/webhooks/{webhook}``."""


def _id_of(webhook: str | Webhook) -> str:
    return webhook if isinstance(webhook, str) else webhook.id


@route("GET /v1/integrations/webhooks/{webhook}/deliveries", DeliveryPage, webhook=_id_of)
def deliveries_page(
    webhook: str | Webhook,
    *,
    status: str | Sequence[str] | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[DeliveryPage]:
    """List deliveries, newest first: ``GET …/webhooks/{webhook}/deliveries``."""


@route("POST /v1/integrations/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", Delivery)
def redeliver(
    webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None
) -> Call[Delivery]:
    """Deliver an event once more: ``POST …/deliveries/{delivery}/redeliver``."""


@route("POST /v1/integrations/webhooks/{webhook_id}/test", Delivery)
def send_test(webhook_id: str, *, idempotency_key: str | None = None) -> Call[Delivery]:
    """Send the event ``webhook.test``, in one try: ``POST …/webhooks/{webhook}/test``."""
