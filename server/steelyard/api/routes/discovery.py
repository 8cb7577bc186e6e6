"""``GET /v1/capabilities`` with its alias ``/v1/onehot``, and ``GET /v1/recipes``."""

from __future__ import annotations

from msgspec import structs
from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response
from steelyard.api.callers import caller_of, services_of
from steelyard.api.routing import Access, Route
from steelyard.wire.discovery import Discovery, RecipeList


async def get_capabilities(request: Request) -> HTTPResponse:
    """Say what this server can do; the account's own models are among the models."""
    services, caller = services_of(request), caller_of(request)
    found = await services.discovery.discover(caller)
    tuned = await services.families.models(caller)
    return json_response(structs.replace(found, models=[*found.models, *tuned]))


async def get_recipes(request: Request) -> HTTPResponse:
    """List ready-made decisions."""
    return json_response(services_of(request).discovery.recipes())


ROUTES = (
    *(
        Route(
            method="GET",
            path=path,
            handler=get_capabilities,
            summary="Say what this server can do: models, recipes, limits, prices.",
            access=Access.KEYED,
            tags=("discovery",),
            response=Discovery,
            is_inference=True,
        )
        for path in ("/v1/capabilities", "/v1/onehot")
    ),
    Route(
        method="GET",
        path="/v1/recipes",
        handler=get_recipes,
        summary="List ready-made decisions for common needs.",
        access=Access.PUBLIC,
        tags=("discovery",),
        response=RecipeList,
        is_inference=True,
    ),
)
