"""The room of endpoints that events are delivered to."""

from __future__ import annotations

import time

from steelyard.errors import errors_of
from steelyard.errors import webhooks as errors
from steelyard.house import House
from steelyard.room import Room
from steelyard.webhooks.routes import ROUTES
from steelyard.webhooks.sender import WebhookSender
from steelyard.webhooks.service import Webhooks
from steelyard.webhooks.store import sweep_deliveries
from steelyard.wire.hosts import host_names


def _open(house: House) -> tuple[object, ...]:
    allowed = host_names(house.settings.webhook_hosts)
    sender = WebhookSender(house.state, allowed=allowed)
    house.close_at_end(sender)
    return (Webhooks(house.state, house.writes, allowed=allowed, wake=sender.wake),)


def _sweep(house: House) -> None:
    sweep_deliveries(house.state, time.time)


ROOM = Room(
    name="webhooks",
    after=("http",),
    nouns=("integrations",),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
    sweeps=(_sweep,),
)
