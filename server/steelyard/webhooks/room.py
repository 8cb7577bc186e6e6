"""The room of endpoints that events are delivered to."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from steelyard.room import House, Room
from steelyard.webhooks.routes import ROUTES
from steelyard.webhooks.store import sweep_deliveries


def _sweep(house: House) -> Callable[[], object]:
    return partial(sweep_deliveries, house.state, time.time)


ROOM = Room(
    name="webhooks",
    nouns=("integrations",),
    routes=ROUTES,
    sweeps=(_sweep,),
)
