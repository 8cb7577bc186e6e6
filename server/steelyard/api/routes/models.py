"""``GET /v1/models``, one model, and whether it answers."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response
from steelyard.api.callers import services_of
from steelyard.api.routing import Access, Route
from steelyard.errors import InvalidReferenceError, NotFoundError
from steelyard.wire.models import Model, ModelList, ModelReadiness


async def get_models(request: Request) -> HTTPResponse:
    """List every model."""
    return json_response(services_of(request).models.list())


async def get_model(request: Request) -> HTTPResponse:
    """Give one model."""
    return json_response(services_of(request).models.describe(request.match_info["model"]))


async def get_model_ready(request: Request) -> HTTPResponse:
    """Say whether a call to the model would be answered now."""
    return json_response(services_of(request).models.readiness(request.match_info["model"]))


ROUTES = (
    Route(
        method="GET",
        path="/v1/models",
        handler=get_models,
        summary="List the models, in full and by name.",
        access=Access.KEYED,
        tags=("models",),
        response=ModelList,
        is_inference=True,
    ),
    Route(
        method="GET",
        path="/v1/models/{model}",
        handler=get_model,
        summary="Give one model.",
        access=Access.KEYED,
        tags=("models",),
        response=Model,
        errors=(NotFoundError, InvalidReferenceError),
        is_inference=True,
    ),
    Route(
        method="GET",
        path="/v1/models/{model}/ready",
        handler=get_model_ready,
        summary="Say whether a call to the model would be answered now; nothing is loaded.",
        access=Access.KEYED,
        tags=("models",),
        response=ModelReadiness,
        errors=(NotFoundError, InvalidReferenceError),
        is_inference=True,
    ),
)
