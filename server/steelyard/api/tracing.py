"""Request ids: one per request, on every response and in every error body."""

from __future__ import annotations

from sanic import Request

from steelyard.ids import new_id

REQUEST_ID_HEADER = "X-Request-ID"


def get_request_id(request: Request) -> str:
    """Give the request's id, minting it at the first call."""
    request_id: str | None = getattr(request.ctx, "request_id", None)
    if request_id is None:
        request_id = request.ctx.request_id = new_id("req")
    return request_id
