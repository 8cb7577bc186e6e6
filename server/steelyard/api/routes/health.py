"""Liveness and readiness: that the server answers, and that it can do its work."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.access import OPERATIONS
from steelyard.api.bodies import json_response
from steelyard.api.callers import services_of
from steelyard.api.routing import Access, Route
from steelyard.errors import EngineUnavailableError
from steelyard.services.readiness import check_ready
from steelyard.version import __version__
from steelyard.wire.health import Health, Readiness


async def get_health(request: Request) -> HTTPResponse:
    """Say that the server answers, with its version, model and engine."""
    model = services_of(request).models.default
    return json_response(Health(version=__version__, model=model.name, engine=model.runs_on))


async def get_ready(request: Request) -> HTTPResponse:
    """Say that every engine scores and the state can be written."""
    services = services_of(request)
    return json_response(Readiness(parts=await check_ready(services.models, services.state)))


ROUTES = (
    *(
        Route(
            method="GET",
            path=path,
            handler=get_health,
            summary="Say that the server lives, and which model and engine run.",
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
            handler=get_ready,
            summary="Try every engine and the state; 503 names what cannot be used.",
            access=Access.OPERATOR,
            tags=(OPERATIONS,),
            response=Readiness,
            errors=(EngineUnavailableError,),
        )
        for path in ("/v1/ready", "/ready")
    ),
)
