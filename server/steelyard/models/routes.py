"""``/v1/models``: the base models and the account's own, and their switches."""

from __future__ import annotations

import asyncio
import functools

from msgspec import structs

from steelyard import errors
from steelyard.families.wire import DeletedModel, KeepModelWarm, SwitchModel
from steelyard.http.routing import REVIEWERS, Access, Call, Route
from steelyard.ledger.max_price import priced
from steelyard.models.base_models import describe_base, list_bases, readiness_of_base
from steelyard.models.service import FamilyModels
from steelyard.models.stress_reports import StressReports
from steelyard.models.wire import (
    GONE,
    DeleteModelQuery,
    Model,
    ModelList,
    ModelName,
    ModelReadiness,
)
from steelyard.serving.registry import ModelRegistry


async def get_models(call: Call) -> ModelList:
    """Return every model."""
    tuned = await call.service(FamilyModels).models(call.caller)
    listed = list_bases(call.service(ModelRegistry), call.services.settings.max_decisions)
    named = [
        ModelName(name=model.id, description=model.description, release_date=model.release_date)
        for model in tuned
        if model.status not in GONE
    ]
    data = [*listed.data, *tuned]
    data = await asyncio.to_thread(call.service(StressReports).add_to, data)
    return structs.replace(listed, data=data, models=[*listed.models, *named])


async def get_model(call: Call) -> Model:
    """Return one model."""
    name = call.path["model"]
    hosted = call.service(ModelRegistry).find(name)
    model = (
        await call.service(FamilyModels).describe_model(call.caller, name)
        if hosted is None
        else describe_base(hosted, call.services.settings.max_decisions)
    )
    [model] = await asyncio.to_thread(call.service(StressReports).add_to, [model])
    return model


async def get_model_ready(call: Call) -> ModelReadiness:
    """Return whether a call to the model would be answered now."""
    name = call.path["model"]
    hosted = call.service(ModelRegistry).find(name)
    if hosted is not None:
        return readiness_of_base(hosted)
    return await call.service(FamilyModels).readiness(call.caller, name)


async def delete_model(call: Call) -> DeletedModel:
    """Delete a model of a family."""
    query: DeleteModelQuery = call.query
    models = call.service(FamilyModels)
    return await models.delete_model(call.write, call.path["model"], query.adapter)


_TAGS = ("models",)
_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)
#: What is said of a number that is none, or no longer.
_OF_NUMBER = (
    errors.NotFoundError,
    errors.InvalidReferenceError,
    errors.FamilyDeletedError,
    errors.ModelDeletedError,
    errors.ModelDiscardedError,
    errors.ModelChangedError,
)

_route = functools.partial(Route, access=Access.KEYED, tags=_TAGS)
_read = functools.partial(_route, roles=REVIEWERS)

ROUTES = (
    _read(
        method="GET",
        path="/v1/models",
        use=get_models,
        summary="List the base models and the account's own, in full and by name.",
        response=ModelList,
        is_inference=True,
    ),
    _read(
        method="GET",
        path="/v1/models/{model}",
        use=get_model,
        summary="Return one model, by a base model's name or by a number such as router@3.",
        response=Model,
        errors=(errors.NotFoundError, errors.InvalidReferenceError, errors.FamilyDeletedError),
        is_inference=True,
    ),
    _route(
        method="DELETE",
        path="/v1/models/{model}",
        use=delete_model,
        summary="Delete a family's model for good, by its number.",
        query=DeleteModelQuery,
        response=DeletedModel,
        errors=(
            *_OF_NUMBER,
            errors.LatestModelError,
            errors.ModelAnswersError,
            errors.VersionInUseError,
            *_KEY_ERRORS,
        ),
    ),
    _read(
        method="GET",
        path="/v1/models/{model}/ready",
        use=get_model_ready,
        summary="Return whether a call to the model would be answered now; nothing is loaded.",
        response=ModelReadiness,
        errors=(
            errors.NotFoundError,
            errors.InvalidReferenceError,
            errors.FamilyOffError,
            errors.FamilyEmptyError,
            errors.ModelOffError,
            errors.ModelUnavailableError,
            errors.FamilyDeletedError,
            errors.ModelDeletedError,
            errors.ModelDiscardedError,
        ),
        is_inference=True,
    ),
    _route(
        method="POST",
        path="/v1/models/{model}/switch",
        use=lambda call: call.service(FamilyModels).switch_model(
            call.write, call.path["model"], call.body
        ),
        summary="Switch a model's own switch on, which loads and probes it first, or off.",
        request=SwitchModel,
        response=Model,
        errors=(
            *_OF_NUMBER,
            errors.LiveLimitError,
            errors.ModelUnavailableError,
            errors.ModelWarmingError,
            errors.WarmCapacityError,
            *_KEY_ERRORS,
        ),
    ),
    _route(
        method="POST",
        path="/v1/models/{model}/keep-warm",
        use=lambda call: call.service(FamilyModels).keep_model_warm(
            call.write, call.path["model"], call.body
        ),
        summary="Keep a model loaded between calls through its own switch, or stop.",
        request=KeepModelWarm,
        read=priced(KeepModelWarm),
        response=Model,
        errors=(
            *_OF_NUMBER,
            errors.ModelOffError,
            errors.WarmLimitError,
            errors.ModelUnavailableError,
            errors.ModelWarmingError,
            errors.WarmCapacityError,
            errors.InsufficientCreditError,
            errors.KeyCapReachedError,
            errors.PriceChangedError,
            *_KEY_ERRORS,
        ),
    ),
)
