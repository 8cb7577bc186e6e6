"""The room of what a person pays for."""

from __future__ import annotations

from steelyard.billing.routes import ROUTES
from steelyard.room import Room

ROOM = Room(
    name="billing",
    routes=ROUTES,
)
