"""``POST /v1/lint``: what about a decide request makes its answers worse; no model runs."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response, read_json_bytes
from steelyard.api.routing import Access, Route
from steelyard.services.lint import lint_async
from steelyard.wire.decide import DecideRequest
from steelyard.wire.lint import LintResponse


async def post_lint(request: Request) -> HTTPResponse:
    """Answer with the warnings on how decisions are asked."""
    return json_response(await lint_async(await read_json_bytes(request)))


ROUTES = (
    Route(
        method="POST",
        path="/v1/lint",
        handler=post_lint,
        summary="Say what about a request makes its answers worse; no model runs.",
        access=Access.PUBLIC,
        tags=("decide",),
        request=DecideRequest,
        response=LintResponse,
        is_inference=True,
    ),
)
