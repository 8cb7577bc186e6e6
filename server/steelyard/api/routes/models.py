"""``/v1/models``: the base models and the account's own, and their switches."""

from __future__ import annotations

from msgspec import structs
from sanic import HTTPResponse, Request

from steelyard.api.bodies import discard_body, json_response, read_json_bytes, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.queries import read_query
from steelyard.api.routing import Access, Route
from steelyard.errors import (
    FamilyDeletedError,
    FamilyEmptyError,
    FamilyOffError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    InsufficientCreditError,
    InvalidReferenceError,
    KeyCapReachedError,
    LatestModelError,
    LiveLimitError,
    ModelAnswersError,
    ModelChangedError,
    ModelDeletedError,
    ModelDiscardedError,
    ModelOffError,
    ModelUnavailableError,
    ModelWarmingError,
    NotFoundError,
    PriceChangedError,
    VersionInUseError,
    WarmCapacityError,
    WarmLimitError,
)
from steelyard.wire.families import DeletedModel, KeepModelWarm, SwitchModel
from steelyard.wire.fine_tuning_queries import DeleteModelQuery
from steelyard.wire.models import Model, ModelList, ModelName, ModelReadiness


async def get_models(request: Request) -> HTTPResponse:
    """List every model."""
    services = services_of(request)
    tuned = await services.families.models(caller_of(request))
    listed = services.models.list()
    named = [
        ModelName(name=model.id, description=model.description, release_date=model.release_date)
        for model in tuned
        if model.status == "ready"
    ]
    return json_response(
        structs.replace(listed, data=[*listed.data, *tuned], models=[*listed.models, *named])
    )


async def get_model(request: Request) -> HTTPResponse:
    """Give one model."""
    services, name = services_of(request), _name(request)
    hosted = services.models.find(name)
    if hosted is not None:
        return json_response(hosted.describe())
    return json_response(await services.families.describe_model(caller_of(request), name))


async def get_model_ready(request: Request) -> HTTPResponse:
    """Say whether a call to the model would be answered now."""
    services, name = services_of(request), _name(request)
    if services.models.find(name) is not None:
        return json_response(services.models.readiness(name))
    return json_response(await services.families.readiness(caller_of(request), name))


async def delete_model(request: Request) -> HTTPResponse:
    """Delete a model of a family."""
    query = read_query(request, DeleteModelQuery)
    await discard_body(request)
    families = services_of(request).families
    return reply_response(
        await families.delete_model(
            caller_of(request), _name(request), query.adapter, key_of(request)
        )
    )


async def post_switch(request: Request) -> HTTPResponse:
    """Switch a model's own switch."""
    body = await read_json_bytes(request)
    families = services_of(request).families
    return reply_response(
        await families.switch_model(caller_of(request), _name(request), body, key_of(request))
    )


async def post_keep_warm(request: Request) -> HTTPResponse:
    """Keep a model loaded on its own, or stop."""
    body = await read_json_bytes(request)
    families = services_of(request).families
    return reply_response(
        await families.keep_model_warm(caller_of(request), _name(request), body, key_of(request))
    )


def _name(request: Request) -> str:
    return str(request.match_info["model"])


_TAGS = ("models",)
_KEY_ERRORS = (IdempotencyConflictError, IdempotencyResponseExpiredError)
#: What is said of a number that is none, or no longer.
_OF_NUMBER = (
    NotFoundError,
    InvalidReferenceError,
    FamilyDeletedError,
    ModelDeletedError,
    ModelDiscardedError,
    ModelChangedError,
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/models",
        handler=get_models,
        summary="List the base models and the account's own, in full and by name.",
        access=Access.KEYED,
        tags=_TAGS,
        response=ModelList,
        is_inference=True,
    ),
    Route(
        method="GET",
        path="/v1/models/{model}",
        handler=get_model,
        summary="Give one model, by a base model's name or by a number such as router@3.",
        access=Access.KEYED,
        tags=_TAGS,
        response=Model,
        errors=(NotFoundError, InvalidReferenceError, FamilyDeletedError),
        is_inference=True,
    ),
    Route(
        method="DELETE",
        path="/v1/models/{model}",
        handler=delete_model,
        summary="Delete a family's model for good, by its number.",
        access=Access.KEYED,
        tags=_TAGS,
        query=DeleteModelQuery,
        response=DeletedModel,
        errors=(
            *_OF_NUMBER,
            LatestModelError,
            ModelAnswersError,
            VersionInUseError,
            *_KEY_ERRORS,
        ),
    ),
    Route(
        method="GET",
        path="/v1/models/{model}/ready",
        handler=get_model_ready,
        summary="Say whether a call to the model would be answered now; nothing is loaded.",
        access=Access.KEYED,
        tags=_TAGS,
        response=ModelReadiness,
        errors=(
            NotFoundError,
            InvalidReferenceError,
            FamilyOffError,
            FamilyEmptyError,
            ModelOffError,
            ModelUnavailableError,
            FamilyDeletedError,
            ModelDeletedError,
            ModelDiscardedError,
        ),
        is_inference=True,
    ),
    Route(
        method="POST",
        path="/v1/models/{model}/switch",
        handler=post_switch,
        summary="Switch a model's own switch on, which loads and probes it first, or off.",
        access=Access.KEYED,
        tags=_TAGS,
        request=SwitchModel,
        response=Model,
        errors=(
            *_OF_NUMBER,
            LiveLimitError,
            ModelUnavailableError,
            ModelWarmingError,
            WarmCapacityError,
            *_KEY_ERRORS,
        ),
    ),
    Route(
        method="POST",
        path="/v1/models/{model}/keep-warm",
        handler=post_keep_warm,
        summary="Keep a model loaded between calls through its own switch, or stop.",
        access=Access.KEYED,
        tags=_TAGS,
        request=KeepModelWarm,
        response=Model,
        errors=(
            *_OF_NUMBER,
            ModelOffError,
            WarmLimitError,
            ModelUnavailableError,
            ModelWarmingError,
            WarmCapacityError,
            InsufficientCreditError,
            KeyCapReachedError,
            PriceChangedError,
            *_KEY_ERRORS,
        ),
    ),
)
