"""The room of what this server can do."""

from __future__ import annotations

from steelyard.discovery.routes import ROUTES
from steelyard.room import Room

ROOM = Room(
    name="discovery",
    nouns=("capabilities", "onehot", "recipes"),
    routes=ROUTES,
)
