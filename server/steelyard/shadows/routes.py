"""``/v1/families/{family}/shadow``: another model on a share of a family's requests."""

import functools

from steelyard import errors
from steelyard.http.routing import KEY_ERRORS, Access, row
from steelyard.serving.routes import UNCALLABLE
from steelyard.shadows.service import Shadows

_route = functools.partial(row, access=Access.KEYED, tags=("families",))
_SHADOW = "/v1/families/{family}/shadow"
_OF_FAMILY = (errors.FamilyDeletedError,)

ROUTES = (
    _route(
        f"GET {_SHADOW}",
        Shadows.report,
        "Compare a family with its shadow on the stored answers that both scored.",
        errors=_OF_FAMILY,
    ),
    _route(
        f"POST {_SHADOW}",
        Shadows.put,
        "Score a share of a family's stored answers with another model, after they were given.",
        errors=(*_OF_FAMILY, *UNCALLABLE, *KEY_ERRORS),
    ),
    _route(
        f"DELETE {_SHADOW}",
        Shadows.end,
        "End a family's shadow; what it answered stays.",
        errors=(*_OF_FAMILY, *KEY_ERRORS),
    ),
)
