"""Liveness and readiness: that the server answers, and that it can do its work."""

from __future__ import annotations

from steelyard.errors import EngineUnavailableError
from steelyard.http.access import OPERATIONS
from steelyard.http.routing import Access, Call, Route
from steelyard.serving.health_wire import Health, Readiness
from steelyard.serving.readiness import check_ready
from steelyard.serving.registry import ModelRegistry
from steelyard.settings import Settings, home_of
from steelyard.storage import State
from steelyard.storage.damage import DamageNotes
from steelyard.version import __version__


async def get_health(call: Call) -> Health:
    """Return that the server answers, with its version, model and engine."""
    model = call.service(ModelRegistry).default
    return Health(version=__version__, model=model.name, engine=model.runs_on)


async def get_ready(call: Call) -> Readiness:
    """Return that every engine scores, the state can be written and nothing was found damaged."""
    damage = DamageNotes(home_of(call.service(Settings)))
    parts = await check_ready(call.service(ModelRegistry), call.service(State), damage)
    return Readiness(parts=parts)


ROUTES = (
    *(
        Route(
            method="GET",
            path=path,
            use=get_health,
            summary="Return that the server runs, with its model and engine.",
            access=Access.PUBLIC,
            tags=(OPERATIONS,),
            response=Health,
        )
        for path in ("/v1/health", "/health")
    ),
    *(
        Route(
            method="GET",
            path=path,
            use=get_ready,
            summary="Try every engine and the state; a refusal names what cannot be used or is damaged.",
            access=Access.OPERATOR,
            tags=(OPERATIONS,),
            response=Readiness,
            errors=(EngineUnavailableError,),
        )
        for path in ("/v1/ready", "/ready")
    ),
)
