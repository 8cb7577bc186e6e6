"""The room of requests in the shapes of other services."""

from __future__ import annotations

from steelyard.dialects.openai import routes as openai
from steelyard.dialects.openai.service import OpenAIDecisionService
from steelyard.dialects.systemone import routes as systemone
from steelyard.dialects.systemone.service import SystemOneService
from steelyard.house import House
from steelyard.room import Room
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService


def _open(house: House) -> tuple[object, ...]:
    decisions = house.get(DecisionService)
    return (
        SystemOneService(decisions, house.get(ModelRegistry)),
        OpenAIDecisionService(decisions),
    )


ROOM = Room(
    name="dialects",
    after=("serving",),
    nouns=("systemone", "decisions"),
    routes=(*systemone.ROUTES, *openai.ROUTES),
    open=_open,
)
