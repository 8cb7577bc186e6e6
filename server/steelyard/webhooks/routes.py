"""``/v1/integrations/webhooks``: events delivered to endpoints of other programs."""

from __future__ import annotations

from functools import partial

from steelyard import errors
from steelyard.http.routing import Access, Route
from steelyard.webhooks.service import Webhooks
from steelyard.webhooks.wire import (
    ChangeWebhook,
    CreateWebhook,
    DeletedWebhook,
    DeliveriesQuery,
    Delivery,
    DeliveryPage,
    Webhook,
    WebhookPage,
    WebhooksQuery,
)

_route = partial(Route, access=Access.KEYED, tags=("webhooks",))
_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)
_KEYED = (errors.NotFoundError, *_KEY_ERRORS)
_WEBHOOKS = "/v1/integrations/webhooks"
_WEBHOOK = f"{_WEBHOOKS}/{{webhook}}"

ROUTES = (
    _route(
        method="POST",
        path=_WEBHOOKS,
        use=lambda call: call.service(Webhooks).create(call.write, call.body),
        summary="Make a webhook; the answer alone has the secret that signs what it is sent.",
        request=CreateWebhook,
        response=Webhook,
        errors=(*_KEY_ERRORS, errors.WebhookLimitError),
    ),
    _route(
        method="GET",
        path=_WEBHOOKS,
        use=lambda call: call.service(Webhooks).page(call.caller, call.query),
        summary="Page the account's webhooks, the newest first.",
        query=WebhooksQuery,
        response=WebhookPage,
    ),
    _route(
        method="GET",
        path=_WEBHOOK,
        use=lambda call: call.service(Webhooks).get(call.caller, call.path["webhook"]),
        summary="Return a webhook.",
        response=Webhook,
        errors=(errors.NotFoundError,),
    ),
    _route(
        method="PATCH",
        path=_WEBHOOK,
        use=lambda call: call.service(Webhooks).change(call.write, call.path["webhook"], call.body),
        summary="Change a webhook, switch it on or off, or make it a new secret.",
        request=ChangeWebhook,
        response=Webhook,
        errors=_KEYED,
    ),
    _route(
        method="DELETE",
        path=_WEBHOOK,
        use=lambda call: call.service(Webhooks).delete(call.write, call.path["webhook"]),
        summary="Remove a webhook and its deliveries.",
        response=DeletedWebhook,
        errors=_KEYED,
    ),
    _route(
        method="GET",
        path=f"{_WEBHOOK}/deliveries",
        use=lambda call: call.service(Webhooks).deliveries(
            call.caller, call.path["webhook"], call.query
        ),
        summary="Page a webhook's deliveries of the last 30 days, the newest first.",
        query=DeliveriesQuery,
        response=DeliveryPage,
        errors=(errors.NotFoundError,),
    ),
    _route(
        method="POST",
        path=f"{_WEBHOOK}/deliveries/{{delivery}}/redeliver",
        use=lambda call: call.service(Webhooks).redeliver(
            call.write, call.path["webhook"], call.path["delivery"]
        ),
        summary="Deliver an event once more, under the same `webhook-id`.",
        response=Delivery,
        errors=(*_KEYED, errors.WebhookOffError),
    ),
    _route(
        method="POST",
        path=f"{_WEBHOOK}/test",
        use=lambda call: call.service(Webhooks).test(call.write, call.path["webhook"]),
        summary="Send a webhook the event `webhook.test`, in one try.",
        response=Delivery,
        errors=(*_KEYED, errors.WebhookOffError),
    ),
)
