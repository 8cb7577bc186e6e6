"""``/v1/families/{family}/shadow``: another model on a share of a family's requests."""

from __future__ import annotations

import functools

from steelyard import errors
from steelyard.http.routing import Access, Route
from steelyard.serving.routes import UNCALLABLE
from steelyard.shadows.service import Shadows
from steelyard.shadows.wire import EndedShadow, SetShadow, Shadow, ShadowQuery, ShadowReport

_route = functools.partial(
    Route, path="/v1/families/{family}/shadow", access=Access.KEYED, tags=("families",)
)
_OF_FAMILY = (errors.NotFoundError, errors.FamilyDeletedError)
_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)

ROUTES = (
    _route(
        method="GET",
        use=lambda call: call.service(Shadows).report(call.caller, call.path["family"], call.query),
        summary="Compare a family with its shadow on the stored answers that both scored.",
        query=ShadowQuery,
        response=ShadowReport,
        errors=_OF_FAMILY,
    ),
    _route(
        method="POST",
        use=lambda call: call.service(Shadows).put(call.write, call.path["family"], call.body),
        summary="Score a share of a family's stored answers with another model, after they were given.",
        request=SetShadow,
        response=Shadow,
        errors=(*_OF_FAMILY, *UNCALLABLE, *_KEY_ERRORS),
    ),
    _route(
        method="DELETE",
        use=lambda call: call.service(Shadows).end(call.write, call.path["family"]),
        summary="End a family's shadow; what it answered stays.",
        response=EndedShadow,
        errors=(*_OF_FAMILY, *_KEY_ERRORS),
    ),
)
