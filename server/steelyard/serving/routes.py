"""``POST /v1/decide`` and its estimate."""

from __future__ import annotations

from steelyard.decisions.estimate_wire import EstimateResponse
from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import DecideRequest, DecideResponse
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
from steelyard.http.routing import Access, Route
from steelyard.serving.service import DecisionService

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
        use=lambda call: call.service(DecisionService).decide(call.write, call.body),
        summary="Answer the decisions about one context.",
        access=Access.KEYED,
        tags=("decide",),
        request=DecideRequest,
        read=read_request,
        response=DecideResponse,
        errors=PAID_ERRORS,
        is_inference=True,
    ),
    Route(
        method="POST",
        path="/v1/decide/estimate",
        use=lambda call: call.service(DecisionService).estimate(call.caller, call.body),
        summary="Return what a request would cost at most; nothing runs and nothing is held.",
        access=Access.KEYED,
        tags=("decide",),
        request=DecideRequest,
        read=read_request,
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
