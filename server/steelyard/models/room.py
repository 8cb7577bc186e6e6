"""The room of models by name."""

from __future__ import annotations

from steelyard.models.routes import ROUTES
from steelyard.room import Room

ROOM = Room(
    name="models",
    routes=ROUTES,
)
