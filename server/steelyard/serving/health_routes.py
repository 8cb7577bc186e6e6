"""Liveness and readiness: that the server answers, and that it can do its work."""

from __future__ import annotations

from steelyard.errors import EngineUnavailableError
from steelyard.http.access import OPERATIONS
from steelyard.http.routing import Access, Call, Route
from steelyard.serving.health_wire import Health, Readiness
from steelyard.serving.readiness import check_ready
from steelyard.serving.registry import ModelRegistry
from steelyard.storage import State
from steelyard.version import __version__


async def get_health(call: Call) -> Health:
    """Return that the server answers, with its version, model and engine."""
    model = call.service(ModelRegistry).default
    return Health(version=__version__, model=model.name, engine=model.runs_on)


async def get_ready(call: Call) -> Readiness:
    """Return that every engine scores and the state can be written."""
    return Readiness(parts=await check_ready(call.service(ModelRegistry), call.service(State)))


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
            summary="Try every engine and the state; 503 names what cannot be used.",
            access=Access.OPERATOR,
            tags=(OPERATIONS,),
            response=Readiness,
            errors=(EngineUnavailableError,),
        )
        for path in ("/v1/ready", "/ready")
    ),
)
