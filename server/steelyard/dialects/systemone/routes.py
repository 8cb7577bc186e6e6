"""``POST /v1/systemone`` and its estimate and translator: TypeSafe's shape of a decision."""

from __future__ import annotations

from steelyard import errors
from steelyard.dialects.systemone import wire
from steelyard.dialects.systemone.mapping import error_body, read_systemone, translate_systemone
from steelyard.dialects.systemone.service import SystemOneService
from steelyard.http.routing import Access, Call, row
from steelyard.serving.routes import PAID_ERRORS, QUOTE_ERRORS, check_flood

_TAGS = ("compatibility",)


async def post_systemone_translate(call: Call) -> wire.TranslateResponse:
    """Return the decide request that asks the same, as it was read."""
    translated: wire.TranslateResponse = call.body
    return translated


ROUTES = (
    row(
        "POST /v1/systemone",
        SystemOneService.answer,
        "Answer a request in TypeSafe's SystemOne shape, charged like decide.",
        access=Access.KEYED,
        tags=_TAGS,
        request=wire.SystemOneRequest,
        also_takes=(wire.NamedSystemOneRequest,),
        read=read_systemone,
        is_bounded=True,
        response=wire.SystemOneResponse,
        check=check_flood,
        errors=(*PAID_ERRORS, errors.NamedDecisionArchivedError),
        error_body=error_body,
        is_inference=True,
    ),
    row(
        "POST /v1/systemone/estimate",
        SystemOneService.estimate,
        "Return what a SystemOne request would cost at most; nothing runs.",
        access=Access.KEYED,
        tags=_TAGS,
        request=wire.SystemOneRequest,
        also_takes=(wire.NamedSystemOneRequest,),
        read=read_systemone,
        is_bounded=True,
        errors=QUOTE_ERRORS,
        is_inference=True,
    ),
    row(
        "POST /v1/systemone/translate",
        post_systemone_translate,
        "Return the decide request that asks what a SystemOne request asks, with notes.",
        access=Access.PUBLIC,
        tags=_TAGS,
        request=wire.SystemOneRequest,
        also_takes=(wire.NamedSystemOneRequest,),
        read=translate_systemone,
        is_bounded=True,
        errors=(errors.ImagesNotSupportedError,),
    ),
)
