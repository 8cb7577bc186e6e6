"""The room of requests in the shapes of other services."""

from __future__ import annotations

from steelyard.dialects.openai import routes as openai
from steelyard.dialects.openai.service import OpenAIDecisionService
from steelyard.dialects.systemone import routes as systemone
from steelyard.dialects.systemone.service import SystemOneService
from steelyard.room import Room
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService


def _open(decisions: DecisionService, registry: ModelRegistry) -> tuple[object, ...]:
    return (
        SystemOneService(decisions, registry),
        OpenAIDecisionService(decisions),
    )


ROOM = Room(
    name="dialects",
    after=("serving",),
    nouns=("systemone", "decisions"),
    routes=(*systemone.ROUTES, *openai.ROUTES),
    open=_open,
)
