"""``/v1/families``: model lines by name, with their switch, keep warm, and fine-tunes.

The oldest clients start a family at ``/v1/fine-tuning/jobs``; that address is answered here too.
"""

from __future__ import annotations

import functools

from steelyard import errors
from steelyard.families.bounds import FamilyBounds
from steelyard.families.fine_tune_wire import FineTuneEstimate, Job
from steelyard.families.service import FamilyService
from steelyard.families.wire import (
    AbstainOnNovel,
    BoundFamily,
    Continue,
    ContinueFamily,
    ContinueQuery,
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
from steelyard.http.routing import Access, Call, Route
from steelyard.ledger.max_price import priced
from steelyard.review.seal import DraftSeals

_TAGS = ("families",)
_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)
_CREDIT_ERRORS = (
    errors.InsufficientCreditError,
    errors.KeyCapReachedError,
    errors.PriceChangedError,
)
#: What a fine-tune is refused for that is not even queued.
_ROWS_ERRORS: tuple[type[errors.SteelyardError], ...] = (
    errors.NotFoundError,
    errors.DatasetArchivedError,
    errors.DatasetDeletedError,
    errors.DatasetMismatchError,
    errors.EvaluationOnlyError,
    errors.TooFewRowsError,
    errors.TooManyRowsError,
    errors.SupervisionMismatchError,
    errors.TaskMismatchError,
    errors.TokensCountingError,
    errors.TrainingUnavailableError,
)
_ORIGIN_ERRORS = (
    errors.FamilyExistsError,
    errors.FamilyDeletedError,
    errors.InvalidNameError,
    errors.InvalidReferenceError,
    errors.ModelDeletedError,
    errors.ModelDiscardedError,
    errors.ModelUnavailableError,
)
_GROWTH_ERRORS = (
    errors.FamilyTrainingError,
    errors.FamilyChangedError,
    errors.FamilyDeletedError,
    errors.InvalidReferenceError,
    errors.NoNewDataError,
    errors.NotEnoughEvaluationDataError,
    errors.ModelUnavailableError,
)
_QUEUE_ERRORS = (
    *_CREDIT_ERRORS,
    *_KEY_ERRORS,
    errors.StorageAllowanceError,
    errors.TenantQueueFullError,
    errors.QueueFullError,
)
_OF_FAMILY = (errors.NotFoundError, errors.FamilyDeletedError)
_LOAD_ERRORS = (errors.ModelUnavailableError, errors.ModelWarmingError, errors.WarmCapacityError)


async def _forecast(call: Call) -> Continue:
    """Return the effect of continuing a family, with a draft sealed as the next version."""
    draft = call.query.draft
    ahead = await call.service(DraftSeals).preview(call.caller, draft) if draft else None
    return await call.service(FamilyService).forecast(call.caller, call.path["family"], ahead)


_route = functools.partial(Route, access=Access.KEYED, tags=_TAGS)

ROUTES = (
    _route(
        method="GET",
        path="/v1/families",
        use=lambda call: call.service(FamilyService).page(call.caller),
        summary="List every family, by name.",
        response=FamilyList,
    ),
    *(
        _route(
            method="POST",
            path=path,
            use=lambda call: call.service(FamilyService).start(call.write, call.body),
            summary=summary,
            tags=tags,
            request=StartFamily,
            read=priced(StartFamily),
            alias_of="/v1/families",
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
        _route(
            method="POST",
            path=path,
            use=lambda call: call.service(FamilyService).estimate(call.caller, call.body),
            summary=summary,
            tags=tags,
            request=EstimateFamily,
            read=priced(EstimateFamily),
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
    _route(
        method="GET",
        path="/v1/families/{family}",
        use=lambda call: call.service(FamilyService).get(call.caller, call.path["family"]),
        summary="Return one family with its fine-tunes, and what continuing it would do now.",
        response=Family,
        errors=_OF_FAMILY,
    ),
    _route(
        method="DELETE",
        path="/v1/families/{family}",
        use=lambda call: call.service(FamilyService).delete(
            call.write, call.path["family"], call.body
        ),
        summary="Delete a family with every model of its line, for good.",
        request=DeleteFamily,
        may_be_empty=True,
        response=DeletedFamily,
        errors=(
            *_OF_FAMILY,
            errors.FamilyAnswersError,
            errors.FamilyTrainingError,
            errors.FamilyChangedError,
            errors.VersionInUseError,
            *_KEY_ERRORS,
        ),
    ),
    _route(
        method="POST",
        path="/v1/families/{family}/switch",
        use=lambda call: call.service(FamilyService).switch(
            call.write, call.path["family"], call.body
        ),
        summary="Switch a family on, which loads and probes its latest model first, or off.",
        request=SwitchFamily,
        response=Family,
        errors=(
            *_OF_FAMILY,
            errors.LiveLimitError,
            errors.ServedChangedError,
            errors.InvalidReferenceError,
            errors.ModelDeletedError,
            errors.ModelDiscardedError,
            *_LOAD_ERRORS,
            *_KEY_ERRORS,
        ),
    ),
    _route(
        method="POST",
        path="/v1/families/{family}/keep-warm",
        use=lambda call: call.service(FamilyService).keep_warm(
            call.write, call.path["family"], call.body
        ),
        summary="Keep the model that a family serves loaded between calls, or stop.",
        request=KeepWarm,
        read=priced(KeepWarm),
        response=Family,
        errors=(
            *_OF_FAMILY,
            errors.FamilyOffError,
            errors.FamilyEmptyError,
            errors.ServedChangedError,
            errors.WarmLimitError,
            errors.InvalidReferenceError,
            errors.ModelDeletedError,
            errors.ModelDiscardedError,
            *_LOAD_ERRORS,
            *_CREDIT_ERRORS,
            *_KEY_ERRORS,
        ),
    ),
    _route(
        method="POST",
        path="/v1/families/{family}/rollback",
        use=lambda call: call.service(FamilyService).roll_back(
            call.write, call.path["family"], call.body
        ),
        summary="Go back to an older model and discard the newer ones for good.",
        request=Rollback,
        response=Family,
        errors=(
            *_OF_FAMILY,
            errors.NothingToRollBackError,
            errors.RollbackChangedError,
            errors.ServedChangedError,
            errors.FamilyChangedError,
            errors.VersionInUseError,
            errors.InvalidReferenceError,
            errors.ModelDeletedError,
            errors.ModelDiscardedError,
            *_LOAD_ERRORS,
            *_KEY_ERRORS,
        ),
    ),
    _route(
        method="POST",
        path="/v1/families/{family}/bound",
        use=lambda call: call.service(FamilyBounds).put(call.write, call.path["family"], call.body),
        summary="Certify that answers above a threshold are wrong at most so often; the rest abstain.",
        request=BoundFamily,
        response=Family,
        errors=(
            *_OF_FAMILY,
            errors.BoundNotCertifiedError,
            errors.DatasetDeletedError,
            errors.FamilyEmptyError,
            errors.NotMeasurableError,
            errors.ServedChangedError,
            *_KEY_ERRORS,
        ),
    ),
    _route(
        method="DELETE",
        path="/v1/families/{family}/bound",
        use=lambda call: call.service(FamilyBounds).remove(call.write, call.path["family"]),
        summary="Remove a family's bound: its answers are neither certified nor abstain for it.",
        response=Family,
        errors=(*_OF_FAMILY, *_KEY_ERRORS),
    ),
    _route(
        method="POST",
        path="/v1/families/{family}/novelty",
        use=lambda call: call.service(FamilyBounds).abstain_on_novel(
            call.write, call.path["family"], call.body
        ),
        summary="Let a family abstain on texts unlike its training rows, however sure it is.",
        request=AbstainOnNovel,
        response=Family,
        errors=(
            *_OF_FAMILY,
            errors.FamilyEmptyError,
            errors.ModelUnavailableError,
            errors.NoveltyUnknownError,
            errors.ServedChangedError,
            *_KEY_ERRORS,
        ),
    ),
    _route(
        method="DELETE",
        path="/v1/families/{family}/novelty",
        use=lambda call: call.service(FamilyBounds).remove_novelty(call.write, call.path["family"]),
        summary="Let a family answer texts unlike its training rows as any other.",
        response=Family,
        errors=(*_OF_FAMILY, *_KEY_ERRORS),
    ),
    _route(
        method="GET",
        path="/v1/families/{family}/continue",
        use=_forecast,
        summary="Return what continuing a family would do now, or once a draft was sealed.",
        query=ContinueQuery,
        response=Continue,
        errors=(
            *_OF_FAMILY,
            errors.DatasetArchivedError,
            errors.DatasetChangedError,
            errors.DatasetDeletedError,
            errors.DatasetMismatchError,
            errors.DraftSealedError,
            errors.NoNewRowsError,
            errors.TooFewRowsError,
        ),
    ),
    _route(
        method="POST",
        path="/v1/families/{family}/continue",
        use=lambda call: call.service(FamilyService).continue_(
            call.write, call.path["family"], call.body
        ),
        summary="Queue a family's next fine-tune, on the rows that its dataset gained.",
        request=ContinueFamily,
        read=priced(ContinueFamily),
        response=Job,
        errors=(*_ROWS_ERRORS, *_GROWTH_ERRORS, *_QUEUE_ERRORS),
    ),
    _route(
        method="POST",
        path="/v1/families/{family}/continue/estimate",
        use=lambda call: call.service(FamilyService).estimate_continue(
            call.caller, call.path["family"], call.body
        ),
        summary="Return what continuing a family would cost now; nothing is queued or held.",
        request=EstimateContinue,
        read=priced(EstimateContinue),
        response=FineTuneEstimate,
        errors=(*_ROWS_ERRORS, *_GROWTH_ERRORS),
    ),
)
