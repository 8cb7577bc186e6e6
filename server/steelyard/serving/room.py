"""The room of what answers."""

from __future__ import annotations

from steelyard.room import Room
from steelyard.serving.routes import ROUTES

ROOM = Room(
    name="serving",
    nouns=("decide", "playground"),
    routes=ROUTES,
)
