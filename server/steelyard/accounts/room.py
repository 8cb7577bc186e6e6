"""The room of accounts."""

from __future__ import annotations

from steelyard.accounts.routes import ROUTES
from steelyard.room import Room

ROOM = Room(
    name="accounts",
    nouns=("account",),
    routes=ROUTES,
)
