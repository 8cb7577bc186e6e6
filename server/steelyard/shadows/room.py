"""The room of models that answer along."""

from __future__ import annotations

from steelyard.evaluations.models import EvaluatedModels
from steelyard.families.lineage_store import LineageStore
from steelyard.house import House
from steelyard.room import Room
from steelyard.serving.registry import ModelRegistry
from steelyard.shadows.routes import ROUTES
from steelyard.shadows.service import Shadows
from steelyard.shadows.tables import shadow_answers


def _open(
    house: House, registry: ModelRegistry, models: EvaluatedModels, lineages: LineageStore
) -> tuple[object, ...]:
    shadows = Shadows(
        house.state,
        house.writes,
        registry,
        models,
        lineages,
    )
    house.tick(shadows.tick, name="steelyard-shadows", failure="Could not score with shadows")
    return (shadows,)


ROOM = Room(
    name="shadows",
    after=("families",),
    nouns=("families",),
    routes=ROUTES,
    open=_open,
    decisions=(shadow_answers.c.decision_id,),
)
