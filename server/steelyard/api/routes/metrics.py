"""``GET /metrics``: figures for Prometheus."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.access import OPERATIONS
from steelyard.api.bodies import text_response
from steelyard.api.metrics import CONTENT_TYPE, Metrics
from steelyard.api.routing import Access, Route


async def get_metrics(request: Request) -> HTTPResponse:
    """Give the figures of this server, of all its processes together."""
    metrics: Metrics = request.app.ctx.metrics
    return text_response(metrics.expose(), CONTENT_TYPE)


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        handler=get_metrics,
        summary="Give figures in Prometheus' text format.",
        access=Access.OPERATOR,
        tags=(OPERATIONS,),
        media_type="text/plain",
    ),
)
