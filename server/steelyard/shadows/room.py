"""The room of models that answer along."""

from __future__ import annotations

from steelyard.room import Room
from steelyard.shadows.routes import ROUTES
from steelyard.shadows.tables import shadow_answers

ROOM = Room(
    name="shadows",
    nouns=("families",),
    routes=ROUTES,
    decisions=(shadow_answers.c.decision_id,),
)
