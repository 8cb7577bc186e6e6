"""The framework's own routes: the guide, the OpenAPI document and the metrics."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
from sanic import HTTPResponse, Request

from steelyard.http.access import OPERATIONS
from steelyard.http.bodies import JSON, text_response
from steelyard.http.metrics import CONTENT_TYPE, Metrics
from steelyard.http.routing import Access, Call, Route


@cache
def guide() -> bytes:
    """Return the guide for coding agents that the package holds."""
    return files("steelyard.http").joinpath("llms.txt").read_bytes()


@cache
def document() -> bytes:
    """Return the OpenAPI document that the package holds, on one line.

    To make it of the routes takes longer than all else that an application is made of.
    """
    return msgspec.json.format(
        files("steelyard.http").joinpath("openapi.json").read_bytes(), indent=-1
    )


async def get_llms(_: Request, _call: Call) -> HTTPResponse:
    """Return the guide."""
    return text_response(guide(), "text/plain; charset=utf-8")


async def get_openapi(_: Request, _call: Call) -> HTTPResponse:
    """Return the OpenAPI document."""
    return text_response(document(), JSON)


async def get_metrics(request: Request, _call: Call) -> HTTPResponse:
    """Return the figures of this server, of all its processes together."""
    metrics: Metrics = request.app.ctx.metrics
    return text_response(metrics.expose(), CONTENT_TYPE)


DOCUMENTS = (
    Route(
        method="GET",
        path="/openapi.json",
        handler=get_openapi,
        summary="Describe every route, as OpenAPI 3.1.",
        access=Access.PUBLIC,
        tags=("documents",),
        media_type=JSON,
    ),
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
FIGURES = (
    Route(
        method="GET",
        path="/metrics",
        handler=get_metrics,
        summary="Return figures in Prometheus' text format.",
        access=Access.OPERATOR,
        tags=(OPERATIONS,),
        media_type="text/plain",
    ),
)
