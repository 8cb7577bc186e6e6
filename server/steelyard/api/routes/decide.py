"""``POST /v1/decide`` and its estimate."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response, read_json_bytes, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.routing import Access, Route
from steelyard.errors import (
    ContextTooLongError,
    DeadlineExceededError,
    EngineUnavailableError,
    FamilyDeletedError,
    FamilyEmptyError,
    FamilyOffError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    ImagesNotSupportedError,
    InsufficientCreditError,
    KeyCapReachedError,
    ModelDeletedError,
    ModelDiscardedError,
    ModelOffError,
    ModelUnavailableError,
    ModelWarmingError,
    NotFoundError,
    OutcomeUnknownError,
    RequestInProgressError,
    TooManyTokensError,
)
from steelyard.wire.decide import DecideRequest, DecideResponse
from steelyard.wire.estimate import EstimateResponse


async def post_decide(request: Request) -> HTTPResponse:
    """Answer one context's decisions."""
    body = await read_json_bytes(request)
    decisions = services_of(request).decisions
    return reply_response(await decisions.decide(caller_of(request), body, key_of(request)))


async def post_estimate(request: Request) -> HTTPResponse:
    """Say what a request would cost at most."""
    body = await read_json_bytes(request)
    return json_response(await services_of(request).decisions.estimate(caller_of(request), body))


#: Why a name that is no base model's answers no calls.
UNCALLABLE = (
    FamilyOffError,
    FamilyEmptyError,
    FamilyDeletedError,
    ModelOffError,
    ModelUnavailableError,
    ModelDeletedError,
    ModelDiscardedError,
)
#: What may come of a request that is charged, besides what any may.
PAID_ERRORS = (
    InsufficientCreditError,
    KeyCapReachedError,
    NotFoundError,
    *UNCALLABLE,
    ModelWarmingError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    OutcomeUnknownError,
    RequestInProgressError,
    TooManyTokensError,
    ContextTooLongError,
    ImagesNotSupportedError,
    EngineUnavailableError,
    DeadlineExceededError,
)

ROUTES = (
    Route(
        method="POST",
        path="/v1/decide",
        handler=post_decide,
        summary="Answer the decisions about one context.",
        access=Access.KEYED,
        tags=("decide",),
        request=DecideRequest,
        response=DecideResponse,
        errors=PAID_ERRORS,
        is_inference=True,
    ),
    Route(
        method="POST",
        path="/v1/decide/estimate",
        handler=post_estimate,
        summary="Say what a request would cost at most; nothing runs and nothing is held.",
        access=Access.KEYED,
        tags=("decide",),
        request=DecideRequest,
        response=EstimateResponse,
        errors=(
            NotFoundError,
            *UNCALLABLE,
            TooManyTokensError,
            ContextTooLongError,
            ImagesNotSupportedError,
        ),
        is_inference=True,
    ),
)
