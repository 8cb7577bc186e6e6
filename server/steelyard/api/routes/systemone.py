"""``POST /v1/systemone`` and its estimate and translator: TypeSafe's shape of a decision."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response, read_json_bytes, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.routes.decide import PAID_ERRORS, UNCALLABLE
from steelyard.api.routing import Access, Route
from steelyard.errors import (
    ContextTooLongError,
    ImagesNotSupportedError,
    NotFoundError,
    TooManyTokensError,
)
from steelyard.wire.estimate import EstimateResponse
from steelyard.wire.systemone import SystemOneRequest, SystemOneResponse, TranslateResponse

_TAGS = ("compatibility",)


async def post_systemone(request: Request) -> HTTPResponse:
    """Answer the questions on one state."""
    body = await read_json_bytes(request)
    service = services_of(request).systemone
    return reply_response(await service.answer(caller_of(request), body, key_of(request)))


async def post_systemone_estimate(request: Request) -> HTTPResponse:
    """Say what a request would cost at most."""
    body = await read_json_bytes(request)
    service = services_of(request).systemone
    return json_response(await service.estimate(caller_of(request), body))


async def post_systemone_translate(request: Request) -> HTTPResponse:
    """Give the decide request that asks the same."""
    body = await read_json_bytes(request)
    return json_response(await services_of(request).systemone.translate(body))


ROUTES = (
    Route(
        method="POST",
        path="/v1/systemone",
        handler=post_systemone,
        summary="Answer a request in TypeSafe's SystemOne shape, charged like decide.",
        access=Access.KEYED,
        tags=_TAGS,
        request=SystemOneRequest,
        response=SystemOneResponse,
        errors=PAID_ERRORS,
        is_inference=True,
    ),
    Route(
        method="POST",
        path="/v1/systemone/estimate",
        handler=post_systemone_estimate,
        summary="Say what a SystemOne request would cost at most; nothing runs.",
        access=Access.KEYED,
        tags=_TAGS,
        request=SystemOneRequest,
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
    Route(
        method="POST",
        path="/v1/systemone/translate",
        handler=post_systemone_translate,
        summary="Give the decide request that asks what a SystemOne request asks, with notes.",
        access=Access.PUBLIC,
        tags=_TAGS,
        request=SystemOneRequest,
        response=TranslateResponse,
        errors=(ImagesNotSupportedError,),
    ),
)
