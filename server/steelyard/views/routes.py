"""``/v1/views``: views of the workbench, kept under names."""

from __future__ import annotations

from functools import partial

from steelyard import errors
from steelyard.http.routing import KEY_ERRORS, Access, row
from steelyard.views.service import Views

_route = partial(row, access=Access.KEYED, tags=("views",))

ROUTES = (
    _route(
        "POST /v1/views",
        Views.save,
        "Keep a view of the workbench under a name, for everybody of the account.",
        errors=(*KEY_ERRORS, errors.ViewExistsError, errors.ViewLimitError),
    ),
    _route("GET /v1/views", Views.page, "Page the account's saved views, the newest first."),
    _route(
        "DELETE /v1/views/{view}",
        Views.delete,
        "Delete a saved view; what it shows stays.",
        errors=(errors.NotFoundError, *KEY_ERRORS),
    ),
)
