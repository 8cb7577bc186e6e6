"""The room of drafts."""

from __future__ import annotations

from steelyard.review.routes import ROUTES
from steelyard.room import Room

ROOM = Room(
    name="review",
    nouns=("drafts",),
    routes=ROUTES,
)
