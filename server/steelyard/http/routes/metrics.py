"""``GET /metrics``: figures for Prometheus."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.http.access import OPERATIONS
from steelyard.http.bodies import text_response
from steelyard.http.metrics import CONTENT_TYPE, Metrics
from steelyard.http.routing import Access, Call, Route


async def get_metrics(request: Request, _call: Call) -> HTTPResponse:
    """Return the figures of this server, of all its processes together."""
    metrics: Metrics = request.app.ctx.metrics
    return text_response(metrics.expose(), CONTENT_TYPE)


ROUTES = (
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
