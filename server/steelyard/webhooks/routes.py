"""``/v1/integrations/webhooks``: events delivered to endpoints of other programs."""

from functools import partial

from steelyard import errors
from steelyard.http.routing import KEY_ERRORS, Access, row
from steelyard.webhooks.service import Webhooks

_route = partial(row, access=Access.KEYED, tags=("webhooks",))
_WEBHOOKS = "/v1/integrations/webhooks"
_WEBHOOK = f"{_WEBHOOKS}/{{webhook}}"

ROUTES = (
    _route(
        f"POST {_WEBHOOKS}",
        Webhooks.create,
        "Make a webhook; the answer alone has the secret that signs what it is sent.",
        errors=(*KEY_ERRORS, errors.WebhookLimitError),
    ),
    _route(f"GET {_WEBHOOKS}", Webhooks.page, "Page the account's webhooks, the newest first."),
    _route(f"GET {_WEBHOOK}", Webhooks.get, "Return a webhook."),
    _route(
        f"PATCH {_WEBHOOK}",
        Webhooks.change,
        "Change a webhook, switch it on or off, or make it a new secret.",
        errors=KEY_ERRORS,
    ),
    _route(
        f"DELETE {_WEBHOOK}",
        Webhooks.delete,
        "Remove a webhook and its deliveries.",
        errors=KEY_ERRORS,
    ),
    _route(
        f"GET {_WEBHOOK}/deliveries",
        Webhooks.deliveries,
        "Page a webhook's deliveries of the last 30 days, the newest first.",
    ),
    _route(
        f"POST {_WEBHOOK}/deliveries/{{delivery}}/redeliver",
        Webhooks.redeliver,
        "Deliver an event once more, under the same `webhook-id`.",
        errors=(*KEY_ERRORS, errors.WebhookOffError),
    ),
    _route(
        f"POST {_WEBHOOK}/test",
        Webhooks.test,
        "Send a webhook the event `webhook.test`, in one try.",
        errors=(*KEY_ERRORS, errors.WebhookOffError),
    ),
)
