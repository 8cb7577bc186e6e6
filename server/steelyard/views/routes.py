"""``/v1/views``: views of the workbench, kept under names."""

from __future__ import annotations

from functools import partial

from steelyard import errors
from steelyard.http.routing import Access, Route
from steelyard.views.service import Views
from steelyard.views.wire import DeletedView, SaveView, View, ViewPage, ViewsQuery

_route = partial(Route, access=Access.KEYED, tags=("views",))
_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)

ROUTES = (
    _route(
        method="POST",
        path="/v1/views",
        use=lambda call: call.service(Views).save(call.write, call.body),
        summary="Keep a view of the workbench under a name, for everybody of the account.",
        request=SaveView,
        response=View,
        errors=(*_KEY_ERRORS, errors.ViewExistsError, errors.ViewLimitError),
    ),
    _route(
        method="GET",
        path="/v1/views",
        use=lambda call: call.service(Views).page(call.caller, call.query),
        summary="Page the account's saved views, the newest first.",
        query=ViewsQuery,
        response=ViewPage,
    ),
    _route(
        method="DELETE",
        path="/v1/views/{view}",
        use=lambda call: call.service(Views).delete(call.write, call.path["view"]),
        summary="Delete a saved view; what it shows stays.",
        response=DeletedView,
        errors=(errors.NotFoundError, *_KEY_ERRORS),
    ),
)
