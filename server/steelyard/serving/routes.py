"""``POST /v1/decide`` and its estimate."""

from __future__ import annotations

from functools import partial
from typing import Any

from steelyard import errors
from steelyard.decisions import wire
from steelyard.decisions.named import NamedRequest, read_named
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.http.access import OPERATIONS, address_group
from steelyard.http.routing import Access, Call, row
from steelyard.serving.health_wire import Health, HealthQuery, Readiness
from steelyard.serving.readiness import check_ready
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService
from steelyard.settings import Settings, home_of
from steelyard.storage import State
from steelyard.storage.damage import DamageNotes
from steelyard.storage.probing import StateProbe
from steelyard.version import __version__
from steelyard.wire.limits import MAX_DECISIONS, MAX_PLAYGROUND_DECISIONS

#: Why a name that is no base model's answers no calls.
UNCALLABLE = (
    errors.FamilyOffError,
    errors.FamilyEmptyError,
    errors.FamilyDeletedError,
    errors.ModelOffError,
    errors.ModelUnavailableError,
    errors.ModelDeletedError,
    errors.ModelDiscardedError,
)
#: Errors of a context that no model reads.
_TEXT_ERRORS = (
    errors.TooManyTokensError,
    errors.ContextTooLongError,
    errors.ImagesNotSupportedError,
)
#: Errors of a request that is charged, beside those of any.
PAID_ERRORS = (
    errors.InsufficientCreditError,
    errors.KeyCapReachedError,
    *UNCALLABLE,
    errors.ModelWarmingError,
    errors.IdempotencyConflictError,
    errors.IdempotencyResponseExpiredError,
    errors.OutcomeUnknownError,
    errors.RequestInProgressError,
    *_TEXT_ERRORS,
    errors.EngineUnavailableError,
    errors.DeadlineExceededError,
)
#: Errors of what a request would cost.
QUOTE_ERRORS = (
    errors.NamedDecisionArchivedError,
    *UNCALLABLE,
    *_TEXT_ERRORS,
)


def read_decide(payload: Any, *, most: int = MAX_DECISIONS) -> ValidRequest | NamedRequest:
    """Read a decide request: one that has its decisions, or one that names a decision."""
    if isinstance(payload, dict) and "decision" in payload:
        return read_named(payload)
    return read_request(payload, most=most)


def check_flood(call: Call) -> None:
    """Refuse a caller whose last request found no room, while there is none."""
    call.service(DecisionService).check_flood(call.write.caller)


async def post_playground_decide(call: Call) -> wire.DecideResponse:
    """Answer one context's decisions, at most 8 of them, free and unstored."""
    address = address_group(call.caller.address)
    return await call.service(DecisionService).playground(call.body, address)


async def get_health(call: Call) -> Health:
    """Return that the server answers, with its version, model and engine."""
    query: HealthQuery = call.query
    if query.for_ == "traffic":
        await call.service(StateProbe).check()
    model = call.service(ModelRegistry).default
    return Health(version=__version__, model=model.name, engine=model.runs_on)


async def get_ready(call: Call) -> Readiness:
    """Return that every engine scores, the state can be written and nothing was found damaged."""
    damage = DamageNotes(home_of(call.service(Settings)))
    parts = await check_ready(call.service(ModelRegistry), call.service(State), damage)
    return Readiness(parts=parts)


ROUTES = (
    row(
        "POST /v1/decide",
        lambda call: call.service(DecisionService).decide(call.write, call.body),
        "Answer the decisions about one context.",
        access=Access.KEYED,
        tags=("decide",),
        request=wire.DecideRequest,
        also_takes=(wire.NamedDecideRequest,),
        read=read_decide,
        is_bounded=True,
        response=wire.DecideResponse,
        check=check_flood,
        errors=(*PAID_ERRORS, errors.NamedDecisionArchivedError),
        is_inference=True,
    ),
    row(
        "POST /v1/decide/estimate",
        DecisionService.estimate,
        "Return what a request would cost at most; nothing runs and nothing is held.",
        access=Access.KEYED,
        tags=("decide",),
        request=wire.DecideRequest,
        also_takes=(wire.NamedDecideRequest,),
        read=read_decide,
        is_bounded=True,
        errors=QUOTE_ERRORS,
        is_inference=True,
    ),
    row(
        "POST /v1/playground/decide",
        post_playground_decide,
        "Answer at most 8 decisions with a base model, free and unstored.",
        access=Access.PUBLIC,
        tags=("decide",),
        request=wire.PlaygroundRequest,
        read=partial(read_request, shape=wire.PlaygroundRequest, most=MAX_PLAYGROUND_DECISIONS),
        errors=(*_TEXT_ERRORS, errors.EngineUnavailableError, errors.DeadlineExceededError),
        is_inference=True,
    ),
)

#: For the operator of the server.
HEALTH_ROUTES = (
    *(
        row(
            f"GET {path}",
            get_health,
            "Return that the server runs, with its model and engine.",
            access=Access.PUBLIC,
            tags=(OPERATIONS,),
            query=HealthQuery,
            errors=(errors.StorageUnavailableError,),
        )
        for path in ("/v1/health", "/health")
    ),
    *(
        row(
            f"GET {path}",
            get_ready,
            "Try every engine and the state; a refusal names what cannot be used or is damaged.",
            access=Access.OPERATOR,
            tags=(OPERATIONS,),
            errors=(errors.EngineUnavailableError,),
        )
        for path in ("/v1/ready", "/ready")
    ),
)
