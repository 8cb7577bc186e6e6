"""``/v1/models``: the base models and the account's own, and their switches."""

from __future__ import annotations

import asyncio
import functools

from msgspec import structs

from steelyard import errors
from steelyard.families.wire import DeletedModel, KeepModelWarm
from steelyard.http.routing import KEY_ERRORS, REVIEWERS, Access, Call, row
from steelyard.ledger.max_price import priced
from steelyard.models import wire
from steelyard.models.base_models import describe_base, list_bases, readiness_of_base
from steelyard.models.service import FamilyModels
from steelyard.models.stress_reports import StressReports
from steelyard.serving.connected.hosts import ModelHosts
from steelyard.serving.registry import ModelRegistry


async def get_models(call: Call) -> wire.ModelList:
    """Return every model."""
    tuned = await call.service(FamilyModels).models(call.caller)
    listed = list_bases(call.service(ModelRegistry), call.services.settings.max_decisions)
    named = [
        wire.ModelName(
            name=model.id, description=model.description, release_date=model.release_date
        )
        for model in tuned
        if model.status not in wire.GONE
    ]
    data = [*listed.data, *tuned]
    data = await asyncio.to_thread(call.service(StressReports).add_to, data)
    return structs.replace(listed, data=data, models=[*listed.models, *named])


async def get_model(call: Call) -> wire.Model:
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


async def get_model_ready(call: Call) -> wire.ModelReadiness:
    """Return whether a call to the model would be answered now."""
    name = call.path["model"]
    hosted = call.service(ModelRegistry).find(name)
    if hosted is not None:
        readiness = readiness_of_base(hosted)
        counted = await call.service(ModelHosts).count(name)
        if counted is None:
            return readiness
        return structs.replace(readiness, hosts=counted[0], hosts_ready=counted[1])
    return await call.service(FamilyModels).readiness(call.caller, name)


async def delete_model(call: Call) -> DeletedModel:
    """Delete a model of a family."""
    query: wire.DeleteModelQuery = call.query
    models = call.service(FamilyModels)
    return await models.delete_model(call.write, call.path["model"], query.adapter)


_TAGS = ("models",)
#: What is said of a number that is none, or no longer.
_OF_NUMBER = (
    errors.InvalidReferenceError,
    errors.FamilyDeletedError,
    errors.ModelDeletedError,
    errors.ModelDiscardedError,
    errors.ModelChangedError,
)

_route = functools.partial(row, access=Access.KEYED, tags=_TAGS)
_read = functools.partial(_route, roles=REVIEWERS)

ROUTES = (
    _read(
        "GET /v1/models",
        get_models,
        "List the base models and the account's own, in full and by name.",
        is_inference=True,
    ),
    _read(
        "GET /v1/models/{model}",
        get_model,
        "Return one model, by a base model's name or by a number such as router@3.",
        errors=(errors.InvalidReferenceError, errors.FamilyDeletedError),
        is_inference=True,
    ),
    _route(
        "DELETE /v1/models/{model}",
        delete_model,
        "Delete a family's model for good, by its number.",
        query=wire.DeleteModelQuery,
        errors=(
            *_OF_NUMBER,
            errors.LatestModelError,
            errors.ModelAnswersError,
            errors.VersionInUseError,
            *KEY_ERRORS,
        ),
    ),
    _read(
        "GET /v1/models/{model}/ready",
        get_model_ready,
        "Return whether a call to the model would be answered now; nothing is loaded.",
        errors=(
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
        "POST /v1/models/{model}/switch",
        FamilyModels.switch_model,
        "Switch a model's own switch on, which loads and probes it first, or off.",
        errors=(
            *_OF_NUMBER,
            errors.LiveLimitError,
            errors.ModelUnavailableError,
            errors.ModelWarmingError,
            errors.WarmCapacityError,
            *KEY_ERRORS,
        ),
    ),
    _route(
        "POST /v1/models/{model}/keep-warm",
        FamilyModels.keep_model_warm,
        "Keep a model loaded between calls through its own switch, or stop.",
        read=priced(KeepModelWarm),
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
            *KEY_ERRORS,
        ),
    ),
)
