"""``POST /v1/playground/decide``: decide for trying out, with fewer decisions and nothing stored."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.access import address_group
from steelyard.api.bodies import json_response, read_json_bytes
from steelyard.api.callers import services_of
from steelyard.api.routing import Access, Route
from steelyard.errors import (
    ContextTooLongError,
    DeadlineExceededError,
    EngineUnavailableError,
    ImagesNotSupportedError,
    TooManyTokensError,
)
from steelyard.wire.decide import DecideResponse
from steelyard.wire.playground import PlaygroundRequest


async def post_playground_decide(request: Request) -> HTTPResponse:
    """Answer one context's decisions, at most 8 of them, free and unstored."""
    body = await read_json_bytes(request)
    address = address_group(request.ip)
    return json_response(await services_of(request).decisions.playground(body, address))


ROUTES = (
    Route(
        method="POST",
        path="/v1/playground/decide",
        handler=post_playground_decide,
        summary="Answer at most 8 decisions with a base model, free and unstored.",
        access=Access.PUBLIC,
        tags=("decide",),
        request=PlaygroundRequest,
        response=DecideResponse,
        errors=(
            TooManyTokensError,
            ContextTooLongError,
            ImagesNotSupportedError,
            EngineUnavailableError,
            DeadlineExceededError,
        ),
        is_inference=True,
    ),
)
