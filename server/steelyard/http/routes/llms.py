"""``GET /llms.txt``: a guide to the API for coding agents."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from sanic import HTTPResponse, Request

from steelyard.http.bodies import text_response
from steelyard.http.routing import Access, Call, Route


@cache
def guide() -> bytes:
    """Return the guide that the package holds."""
    return files("steelyard.http").joinpath("llms.txt").read_bytes()


async def get_llms(_: Request, _call: Call) -> HTTPResponse:
    """Return the guide."""
    return text_response(guide(), "text/plain; charset=utf-8")


ROUTES = (
    Route(
        method="GET",
        path="/llms.txt",
        handler=get_llms,
        summary="A guide to this API for coding agents.",
        access=Access.PUBLIC,
        tags=("documents",),
        media_type="text/plain",
    ),
)
