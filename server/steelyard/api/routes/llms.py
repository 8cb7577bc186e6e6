"""``GET /llms.txt``: a guide to the API for coding agents."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from sanic import HTTPResponse, Request

from steelyard.api.bodies import text_response
from steelyard.api.routing import Access, Route


@cache
def guide() -> bytes:
    """Give the guide that the package holds."""
    return files("steelyard.api").joinpath("llms.txt").read_bytes()


async def get_llms(_: Request) -> HTTPResponse:
    """Give the guide."""
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
