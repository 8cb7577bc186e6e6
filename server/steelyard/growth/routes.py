"""``/v1/named-decisions/{name}/growth``: a named decision's growth policy and progress."""

from __future__ import annotations

from functools import partial

from steelyard import errors
from steelyard.growth.service import Growths
from steelyard.growth.wire import Growth, SetGrowth
from steelyard.http.routing import Access, Route
from steelyard.ledger.max_price import priced

_route = partial(
    Route,
    path="/v1/named-decisions/{named_decision}/growth",
    access=Access.KEYED,
    tags=("named decisions",),
    response=Growth,
)
_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)

ROUTES = (
    _route(
        method="GET",
        use=lambda call: call.service(Growths).get(call.caller, call.path["named_decision"]),
        summary="Return what a named decision may do by itself, how far it is, and why it waits.",
        errors=(errors.NotFoundError,),
    ),
    _route(
        method="PUT",
        use=lambda call: call.service(Growths).put(
            call.write, call.path["named_decision"], call.body
        ),
        summary="Let a named decision grow a family of its own, with the leave that is given.",
        request=SetGrowth,
        read=priced(SetGrowth),
        errors=(
            errors.NotFoundError,
            errors.InvalidNameError,
            errors.InvalidReferenceError,
            *_KEY_ERRORS,
        ),
    ),
    _route(
        method="DELETE",
        use=lambda call: call.service(Growths).stop(call.write, call.path["named_decision"]),
        summary="Stop a growth; its rows, family and versions stay.",
        errors=(errors.NotFoundError, *_KEY_ERRORS),
    ),
    _route(
        method="POST",
        path="/v1/named-decisions/{named_decision}/growth/turn",
        use=lambda call: call.service(Growths).turn(call.write, call.path["named_decision"]),
        summary="Look at a growth now instead of within five minutes, and take its next step.",
        errors=(errors.NotFoundError, *_KEY_ERRORS),
    ),
)
