"""``/v1/families``: model lines by name, with their switch, keep warm, and fine-tunes.

The oldest clients start a family at ``/v1/fine-tuning/jobs``; that address is answered here too.
"""

from __future__ import annotations

import functools

from steelyard import errors
from steelyard.families import wire
from steelyard.families.bounds import FamilyBounds
from steelyard.families.service import FamilyService
from steelyard.http.routing import KEY_ERRORS, Access, Call, row
from steelyard.ledger.max_price import priced
from steelyard.review.seal import DraftSeals

_TAGS = ("families",)
_CREDIT_ERRORS = (
    errors.InsufficientCreditError,
    errors.KeyCapReachedError,
    errors.PriceChangedError,
)
#: What a fine-tune is refused for that is not even queued.
_ROWS_ERRORS: tuple[type[errors.SteelyardError], ...] = (
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
    *KEY_ERRORS,
    errors.StorageAllowanceError,
    errors.TenantQueueFullError,
    errors.QueueFullError,
)
_OF_FAMILY = (errors.FamilyDeletedError,)
_LOAD_ERRORS = (errors.ModelUnavailableError, errors.ModelWarmingError, errors.WarmCapacityError)


async def _forecast(call: Call) -> wire.Continue:
    """Return the effect of continuing a family, with a draft sealed as the next version."""
    draft = call.query.draft
    ahead = await call.service(DraftSeals).preview(call.caller, draft) if draft else None
    return await call.service(FamilyService).forecast(call.caller, call.path["family"], ahead)


_route = functools.partial(row, access=Access.KEYED, tags=_TAGS)

ROUTES = (
    _route("GET /v1/families", FamilyService.page, "List every family, by name."),
    *(
        _route(
            f"POST {path}",
            FamilyService.start,
            summary,
            tags=tags,
            read=priced(wire.StartFamily),
            alias_of="/v1/families",
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
            f"POST {path}",
            FamilyService.estimate,
            summary,
            tags=tags,
            read=priced(wire.EstimateFamily),
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
        "GET /v1/families/{family}",
        FamilyService.get,
        "Return one family with its fine-tunes, and what continuing it would do now.",
        errors=_OF_FAMILY,
    ),
    _route(
        "DELETE /v1/families/{family}",
        FamilyService.delete,
        "Delete a family with every model of its line, for good.",
        may_be_empty=True,
        errors=(
            *_OF_FAMILY,
            errors.FamilyAnswersError,
            errors.FamilyTrainingError,
            errors.FamilyChangedError,
            errors.VersionInUseError,
            *KEY_ERRORS,
        ),
    ),
    _route(
        "POST /v1/families/{family}/switch",
        FamilyService.switch,
        "Switch a family on, which loads and probes its latest model first, or off.",
        errors=(
            *_OF_FAMILY,
            errors.LiveLimitError,
            errors.ServedChangedError,
            errors.InvalidReferenceError,
            errors.ModelDeletedError,
            errors.ModelDiscardedError,
            *_LOAD_ERRORS,
            *KEY_ERRORS,
        ),
    ),
    _route(
        "POST /v1/families/{family}/keep-warm",
        FamilyService.keep_warm,
        "Keep the model that a family serves loaded between calls, or stop.",
        read=priced(wire.KeepWarm),
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
            *KEY_ERRORS,
        ),
    ),
    _route(
        "POST /v1/families/{family}/rollback",
        FamilyService.roll_back,
        "Go back to an older model and discard the newer ones for good.",
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
            *KEY_ERRORS,
        ),
    ),
    _route(
        "POST /v1/families/{family}/bound",
        FamilyBounds.put,
        "Certify that answers above a threshold are wrong at most so often; the rest abstain.",
        errors=(
            *_OF_FAMILY,
            errors.BoundNotCertifiedError,
            errors.DatasetDeletedError,
            errors.FamilyEmptyError,
            errors.NotMeasurableError,
            errors.ServedChangedError,
            *KEY_ERRORS,
        ),
    ),
    _route(
        "DELETE /v1/families/{family}/bound",
        FamilyBounds.remove,
        "Remove a family's bound: its answers are neither certified nor abstain for it.",
        errors=(*_OF_FAMILY, *KEY_ERRORS),
    ),
    _route(
        "POST /v1/families/{family}/novelty",
        FamilyBounds.abstain_on_novel,
        "Let a family abstain on texts unlike its training rows, however sure it is.",
        errors=(
            *_OF_FAMILY,
            errors.FamilyEmptyError,
            errors.ModelUnavailableError,
            errors.NoveltyUnknownError,
            errors.ServedChangedError,
            *KEY_ERRORS,
        ),
    ),
    _route(
        "DELETE /v1/families/{family}/novelty",
        FamilyBounds.remove_novelty,
        "Let a family answer texts unlike its training rows as any other.",
        errors=(*_OF_FAMILY, *KEY_ERRORS),
    ),
    _route(
        "GET /v1/families/{family}/continue",
        _forecast,
        "Return what continuing a family would do now, or once a draft was sealed.",
        query=wire.ContinueQuery,
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
        "POST /v1/families/{family}/continue",
        FamilyService.continue_,
        "Queue a family's next fine-tune, on the rows that its dataset gained.",
        read=priced(wire.ContinueFamily),
        errors=(*_ROWS_ERRORS, *_GROWTH_ERRORS, *_QUEUE_ERRORS),
    ),
    _route(
        "POST /v1/families/{family}/continue/estimate",
        FamilyService.estimate_continue,
        "Return what continuing a family would cost now; nothing is queued or held.",
        read=priced(wire.EstimateContinue),
        errors=(*_ROWS_ERRORS, *_GROWTH_ERRORS),
    ),
)
