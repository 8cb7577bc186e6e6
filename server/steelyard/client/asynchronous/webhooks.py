"""``client.webhooks``: an account's events, delivered to endpoints of other programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from steelyard.client import webhook_calls as calls
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method
from steelyard.webhooks.wire import Delivery, Webhook


class AsyncWebhooks(AsyncResource):
    """An account's events, delivered to endpoints of other programs: ``client.webhooks``."""

    create = _method(calls.create)
    get = _method(calls.get)
    change = _method(calls.change)
    delete = _method(calls.delete)
    redeliver = _method(calls.redeliver)
    test = _method(calls.send_test)

    def list(self, *, page_size: int = 200) -> AsyncIterator[Webhook]:
        """Iterate over webhooks, newest first."""
        return self._iterate(lambda cursor: calls.page(limit=page_size, cursor=cursor))

    def deliveries(
        self,
        webhook: str | Webhook,
        *,
        status: str | Sequence[str] | None = None,
        page_size: int = 200,
    ) -> AsyncIterator[Delivery]:
        """Iterate over the deliveries to a webhook, newest first."""
        webhook_id = webhook if isinstance(webhook, str) else webhook.id
        return self._iterate(
            lambda cursor: calls.deliveries_page(
                webhook_id, status=status, limit=page_size, cursor=cursor
            )
        )
