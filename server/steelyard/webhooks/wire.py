"""Webhooks on the wire. Times are Unix seconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.outbox.names import Event
from steelyard.webhooks.targets import MAX_URL
from steelyard.wire.queries import CursorPage, OneOf, PageQuery
from steelyard.wire.schemas import SINGLE_LINE, doc

DeliveryStatus = Literal["waiting", "delivered", "failed"]

_Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_URL,
        description="`https://HOST[:PORT][/PATH]`, of the public internet unless whoever runs the "
        "server lists the host.",
    ),
]
_Events = Annotated[list[Event], Meta(min_length=1, max_length=32, description="What it is sent.")]
_Description = Annotated[str, Meta(max_length=200, pattern=SINGLE_LINE, description="For people.")]


class CreateWebhook(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An endpoint, and the events that it is sent."""

    url: _Url
    events: _Events
    description: _Description = ""


class ChangeWebhook(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A change of a webhook; fields left out stay."""

    url: _Url | None = None
    events: _Events | None = None
    description: _Description | None = None
    enabled: Annotated[
        bool | None, doc("Switched off, it is sent nothing, and what waited is given up.")
    ] = None
    rotate_secret: Annotated[
        bool, doc("Make a new secret; for a day, deliveries are signed with both.")
    ] = False


class DeliveriesQuery(PageQuery, frozen=True, kw_only=True):
    """Which deliveries, and which page of them."""

    status: OneOf[DeliveryStatus] = []


class Webhook(Struct, frozen=True, kw_only=True):
    """An endpoint that is sent an account's events."""

    id: str
    url: str
    events: list[Event]
    description: str
    enabled: bool
    disabled_reason: Annotated[str | None, doc("Why it was switched off; null while it is on.")]
    failing_since: Annotated[
        float | None, doc("Since when every try failed; null after one that did not.")
    ]
    created_at: float
    updated_at: float
    secret: Annotated[
        str | UnsetType,
        doc("What deliveries are signed with; told when it is made, and never again."),
    ] = UNSET


class WebhookPage(CursorPage[Webhook], frozen=True):
    """A page of webhooks, newest first."""


class DeletedWebhook(Struct, frozen=True, kw_only=True):
    """A webhook that is no more, nor its deliveries."""

    id: str
    deleted: bool


class Delivery(Struct, frozen=True, kw_only=True):
    """An event on its way to a webhook: its body, and the outcome of the last try."""

    id: str
    webhook_id: str
    event_id: Annotated[str, doc("The header `webhook-id`: the same at every try and redelivery.")]
    event: str
    subject: Annotated[str, doc("What it is about; events about the same arrive in order.")]
    status: DeliveryStatus
    attempts: Annotated[int, doc("Tries so far.")]
    created_at: float
    next_try_at: Annotated[float | None, doc("Null once it has ended.")]
    ended_at: float | None
    response_status: Annotated[int | None, doc("Of the last try; null without one.")]
    response: Annotated[str | None, doc("First 1,000 characters of that answer.")]
    error: Annotated[str | None, doc("Why the last try failed.")]
    payload: dict[str, Any]


class DeliveryPage(CursorPage[Delivery], frozen=True):
    """A page of deliveries, newest first."""
