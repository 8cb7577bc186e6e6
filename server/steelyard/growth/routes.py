"""``/v1/named-decisions/{name}/growth``: a named decision's growth policy and progress."""

from functools import partial

from steelyard import errors
from steelyard.growth.service import Growths
from steelyard.growth.wire import SetGrowth
from steelyard.http.routing import KEY_ERRORS, Access, row
from steelyard.ledger.max_price import priced

_route = partial(row, access=Access.KEYED, tags=("named decisions",))
_GROWTH = "/v1/named-decisions/{named_decision}/growth"

ROUTES = (
    _route(
        f"GET {_GROWTH}",
        Growths.get,
        "Return what a named decision may do by itself, how far it is, and why it waits.",
    ),
    _route(
        f"PUT {_GROWTH}",
        Growths.put,
        "Let a named decision grow a family of its own, with the leave that is given.",
        read=priced(SetGrowth),
        errors=(
            errors.InvalidNameError,
            errors.InvalidReferenceError,
            *KEY_ERRORS,
        ),
    ),
    _route(
        f"DELETE {_GROWTH}",
        Growths.stop,
        "Stop a growth; its rows, family and versions stay.",
        errors=KEY_ERRORS,
    ),
    _route(
        f"POST {_GROWTH}/turn",
        Growths.turn,
        "Look at a growth now instead of within five minutes, and take its next step.",
        errors=KEY_ERRORS,
    ),
)
