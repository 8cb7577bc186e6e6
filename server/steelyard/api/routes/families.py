"""``/v1/families``: lines of models by name, their switch, their keep warm, and what grows them.

The oldest clients start a family at ``/v1/fine-tuning/jobs``; that address is answered here too.
"""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import (
    JSON,
    json_response,
    media_type_of,
    read_bytes,
    read_json_bytes,
    reply_response,
)
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.routing import Access, Route
from steelyard.errors import (
    DatasetArchivedError,
    DatasetDeletedError,
    DatasetMismatchError,
    EvaluationOnlyError,
    FamilyAnswersError,
    FamilyChangedError,
    FamilyDeletedError,
    FamilyEmptyError,
    FamilyExistsError,
    FamilyOffError,
    FamilyTrainingError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    InsufficientCreditError,
    InvalidNameError,
    InvalidReferenceError,
    KeyCapReachedError,
    LiveLimitError,
    ModelDeletedError,
    ModelDiscardedError,
    ModelUnavailableError,
    ModelWarmingError,
    NoNewDataError,
    NotEnoughEvaluationDataError,
    NotFoundError,
    NothingToRollBackError,
    PriceChangedError,
    QueueFullError,
    RollbackChangedError,
    ServedChangedError,
    SteelyardError,
    StorageAllowanceError,
    SupervisionMismatchError,
    TaskMismatchError,
    TenantQueueFullError,
    TokensCountingError,
    TooFewRowsError,
    TooManyRowsError,
    TrainingUnavailableError,
    VersionInUseError,
    WarmCapacityError,
    WarmLimitError,
)
from steelyard.wire.families import (
    ContinueFamily,
    DeletedFamily,
    DeleteFamily,
    EstimateContinue,
    EstimateFamily,
    Family,
    FamilyList,
    KeepWarm,
    Rollback,
    StartFamily,
    SwitchFamily,
)
from steelyard.wire.fine_tuning import FineTuneEstimate, Job


async def post_family(request: Request) -> HTTPResponse:
    """Start a family with its first fine-tune."""
    body = await read_json_bytes(request)
    return reply_response(
        await services_of(request).families.start(caller_of(request), body, key_of(request))
    )


async def post_estimate(request: Request) -> HTTPResponse:
    """Say what starting a family would cost."""
    body = await read_json_bytes(request)
    return json_response(await services_of(request).families.estimate(caller_of(request), body))


async def get_families(request: Request) -> HTTPResponse:
    """List every family."""
    return json_response(await services_of(request).families.page(caller_of(request)))


async def get_family(request: Request) -> HTTPResponse:
    """Give one family."""
    families = services_of(request).families
    return json_response(await families.get(caller_of(request), _name(request)))


async def delete_family(request: Request) -> HTTPResponse:
    """Delete a family."""
    body = await read_bytes(request)
    if body:
        media_type_of(request, JSON)
    families = services_of(request).families
    return reply_response(
        await families.delete(caller_of(request), _name(request), body or b"{}", key_of(request))
    )


async def post_switch(request: Request) -> HTTPResponse:
    """Switch a family on or off."""
    body = await read_json_bytes(request)
    families = services_of(request).families
    return reply_response(
        await families.switch(caller_of(request), _name(request), body, key_of(request))
    )


async def post_keep_warm(request: Request) -> HTTPResponse:
    """Keep the model that a family serves loaded, or stop."""
    body = await read_json_bytes(request)
    families = services_of(request).families
    return reply_response(
        await families.keep_warm(caller_of(request), _name(request), body, key_of(request))
    )


async def post_rollback(request: Request) -> HTTPResponse:
    """Take a family back to an older model."""
    body = await read_json_bytes(request)
    families = services_of(request).families
    return reply_response(
        await families.roll_back(caller_of(request), _name(request), body, key_of(request))
    )


async def post_continue(request: Request) -> HTTPResponse:
    """Queue a family's next fine-tune."""
    body = await read_json_bytes(request)
    families = services_of(request).families
    return reply_response(
        await families.continue_(caller_of(request), _name(request), body, key_of(request))
    )


async def post_continue_estimate(request: Request) -> HTTPResponse:
    """Say what continuing a family would cost."""
    body = await read_json_bytes(request)
    families = services_of(request).families
    return json_response(await families.estimate_continue(caller_of(request), _name(request), body))


def _name(request: Request) -> str:
    return str(request.match_info["family"])


_TAGS = ("families",)
_KEY_ERRORS = (IdempotencyConflictError, IdempotencyResponseExpiredError)
_CREDIT_ERRORS = (InsufficientCreditError, KeyCapReachedError, PriceChangedError)
#: What a fine-tune is refused for that is not even queued.
_ROWS_ERRORS: tuple[type[SteelyardError], ...] = (
    NotFoundError,
    DatasetArchivedError,
    DatasetDeletedError,
    DatasetMismatchError,
    EvaluationOnlyError,
    TooFewRowsError,
    TooManyRowsError,
    SupervisionMismatchError,
    TaskMismatchError,
    TokensCountingError,
    TrainingUnavailableError,
)
_ORIGIN_ERRORS = (
    FamilyExistsError,
    FamilyDeletedError,
    InvalidNameError,
    InvalidReferenceError,
    ModelDeletedError,
    ModelDiscardedError,
    ModelUnavailableError,
)
_GROWTH_ERRORS = (
    FamilyTrainingError,
    FamilyChangedError,
    FamilyDeletedError,
    NoNewDataError,
    NotEnoughEvaluationDataError,
    ModelUnavailableError,
)
_QUEUE_ERRORS = (
    *_CREDIT_ERRORS,
    *_KEY_ERRORS,
    StorageAllowanceError,
    TenantQueueFullError,
    QueueFullError,
)
_OF_FAMILY = (NotFoundError, FamilyDeletedError)
_LOAD_ERRORS = (ModelUnavailableError, ModelWarmingError, WarmCapacityError)

ROUTES = (
    Route(
        method="GET",
        path="/v1/families",
        handler=get_families,
        summary="List every family, by name.",
        access=Access.KEYED,
        tags=_TAGS,
        response=FamilyList,
    ),
    *(
        Route(
            method="POST",
            path=path,
            handler=post_family,
            summary=summary,
            access=Access.KEYED,
            tags=tags,
            request=StartFamily,
            response=Job,
            errors=(*_ROWS_ERRORS, *_ORIGIN_ERRORS, *_QUEUE_ERRORS),
        )
        for path, summary, tags in (
            ("/v1/families", "Start a family: queue its first fine-tune.", _TAGS),
            (
                "/v1/fine-tuning/jobs",
                "Start a family, as older clients ask for it.",
                ("fine-tuning",),
            ),
        )
    ),
    *(
        Route(
            method="POST",
            path=path,
            handler=post_estimate,
            summary=summary,
            access=Access.KEYED,
            tags=tags,
            request=EstimateFamily,
            response=FineTuneEstimate,
            errors=(*_ROWS_ERRORS, *_ORIGIN_ERRORS),
        )
        for path, summary, tags in (
            (
                "/v1/families/estimate",
                "Say what starting a family would cost now; nothing is queued or held.",
                _TAGS,
            ),
            (
                "/v1/fine-tuning/jobs/estimate",
                "Say what starting a family would cost, as older clients ask for it.",
                ("fine-tuning",),
            ),
        )
    ),
    Route(
        method="GET",
        path="/v1/families/{family}",
        handler=get_family,
        summary="Give one family with its fine-tunes, and what continuing it would do now.",
        access=Access.KEYED,
        tags=_TAGS,
        response=Family,
        errors=_OF_FAMILY,
    ),
    Route(
        method="DELETE",
        path="/v1/families/{family}",
        handler=delete_family,
        summary="Delete a family with every model of its line, for good.",
        access=Access.KEYED,
        tags=_TAGS,
        request=DeleteFamily,
        response=DeletedFamily,
        errors=(
            *_OF_FAMILY,
            FamilyAnswersError,
            FamilyTrainingError,
            FamilyChangedError,
            VersionInUseError,
            *_KEY_ERRORS,
        ),
    ),
    Route(
        method="POST",
        path="/v1/families/{family}/switch",
        handler=post_switch,
        summary="Switch a family on, which loads and probes its latest model first, or off.",
        access=Access.KEYED,
        tags=_TAGS,
        request=SwitchFamily,
        response=Family,
        errors=(
            *_OF_FAMILY,
            LiveLimitError,
            ServedChangedError,
            InvalidReferenceError,
            ModelDeletedError,
            ModelDiscardedError,
            *_LOAD_ERRORS,
            *_KEY_ERRORS,
        ),
    ),
    Route(
        method="POST",
        path="/v1/families/{family}/keep-warm",
        handler=post_keep_warm,
        summary="Keep the model that a family serves loaded between calls, or stop.",
        access=Access.KEYED,
        tags=_TAGS,
        request=KeepWarm,
        response=Family,
        errors=(
            *_OF_FAMILY,
            FamilyOffError,
            FamilyEmptyError,
            ServedChangedError,
            WarmLimitError,
            InvalidReferenceError,
            ModelDeletedError,
            ModelDiscardedError,
            *_LOAD_ERRORS,
            *_CREDIT_ERRORS,
            *_KEY_ERRORS,
        ),
    ),
    Route(
        method="POST",
        path="/v1/families/{family}/rollback",
        handler=post_rollback,
        summary="Go back to an older model and discard the newer ones for good.",
        access=Access.KEYED,
        tags=_TAGS,
        request=Rollback,
        response=Family,
        errors=(
            *_OF_FAMILY,
            NothingToRollBackError,
            RollbackChangedError,
            ServedChangedError,
            FamilyChangedError,
            VersionInUseError,
            InvalidReferenceError,
            ModelDeletedError,
            ModelDiscardedError,
            *_LOAD_ERRORS,
            *_KEY_ERRORS,
        ),
    ),
    Route(
        method="POST",
        path="/v1/families/{family}/continue",
        handler=post_continue,
        summary="Queue a family's next fine-tune, on the rows that its dataset gained.",
        access=Access.KEYED,
        tags=_TAGS,
        request=ContinueFamily,
        response=Job,
        errors=(*_ROWS_ERRORS, *_GROWTH_ERRORS, *_QUEUE_ERRORS),
    ),
    Route(
        method="POST",
        path="/v1/families/{family}/continue/estimate",
        handler=post_continue_estimate,
        summary="Say what continuing a family would cost now; nothing is queued or held.",
        access=Access.KEYED,
        tags=_TAGS,
        request=EstimateContinue,
        response=FineTuneEstimate,
        errors=(*_ROWS_ERRORS, *_GROWTH_ERRORS),
    ),
)
