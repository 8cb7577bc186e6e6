"""``GET /openapi.json``: the description of every route, as this process serves them."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.http.bodies import JSON, text_response
from steelyard.http.routing import Access, Call, Route


async def get_openapi(request: Request, _call: Call) -> HTTPResponse:
    """Return the OpenAPI document."""
    document: bytes = request.app.ctx.openapi
    return text_response(document, JSON)


ROUTES = (
    Route(
        method="GET",
        path="/openapi.json",
        handler=get_openapi,
        summary="Describe every route, as OpenAPI 3.1.",
        access=Access.PUBLIC,
        tags=("documents",),
        media_type=JSON,
    ),
)
