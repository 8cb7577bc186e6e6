"""The room of views of the workbench."""

from __future__ import annotations

from steelyard.room import Room
from steelyard.views.routes import ROUTES

ROOM = Room(
    name="views",
    routes=ROUTES,
)
