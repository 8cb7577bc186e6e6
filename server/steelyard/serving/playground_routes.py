"""``POST /v1/playground/decide``: decide for trying out, with fewer decisions and nothing stored."""

from __future__ import annotations

from functools import partial

from steelyard.decisions.playground_wire import PlaygroundRequest
from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import (
    ContextTooLongError,
    DeadlineExceededError,
    EngineUnavailableError,
    ImagesNotSupportedError,
    TooManyTokensError,
)
from steelyard.http.access import address_group
from steelyard.http.routing import Access, Call, Route
from steelyard.serving.service import DecisionService


async def post_playground_decide(call: Call) -> DecideResponse:
    """Answer one context's decisions, at most 8 of them, free and unstored."""
    address = address_group(call.caller.address)
    return await call.service(DecisionService).playground(call.body, address)


ROUTES = (
    Route(
        method="POST",
        path="/v1/playground/decide",
        use=post_playground_decide,
        summary="Answer at most 8 decisions with a base model, free and unstored.",
        access=Access.PUBLIC,
        tags=("decide",),
        request=PlaygroundRequest,
        read=partial(read_request, shape=PlaygroundRequest),
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
