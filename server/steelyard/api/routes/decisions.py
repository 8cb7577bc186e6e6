"""``POST /v1/decisions``: the shape of a decision that OpenAI's client and LiteLLM use."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import read_json_bytes, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.routes.decide import PAID_ERRORS
from steelyard.api.routing import Access, Route
from steelyard.decisions.openai import error_body
from steelyard.wire.openai_decisions import DecisionsRequest, DecisionsResponse


async def post_decisions(request: Request) -> HTTPResponse:
    """Answer the questions on one input."""
    body = await read_json_bytes(request)
    service = services_of(request).openai_decisions
    return reply_response(await service.answer(caller_of(request), body, key_of(request)))


ROUTES = (
    Route(
        method="POST",
        path="/v1/decisions",
        handler=post_decisions,
        summary="Answer a request in the shape of OpenAI's decisions, charged like decide.",
        access=Access.KEYED,
        tags=("compatibility",),
        request=DecisionsRequest,
        response=DecisionsResponse,
        errors=PAID_ERRORS,
        is_inference=True,
        error_body=error_body,
    ),
)
