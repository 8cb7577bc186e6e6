"""The room of requests in the shapes of other services."""

from __future__ import annotations

from steelyard.dialects.openai import routes as openai
from steelyard.dialects.systemone import routes as systemone
from steelyard.room import Room

ROOM = Room(
    name="dialects",
    nouns=("systemone", "decisions"),
    routes=(*systemone.ROUTES, *openai.ROUTES),
)
