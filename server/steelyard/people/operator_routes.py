"""``/v1/operator``: the whole server, for signed-in operators."""

import functools

from steelyard import errors
from steelyard.http.routing import KEY_ERRORS, Access, row
from steelyard.people.operator_service import Operator
from steelyard.people.roles import ANYBODY

# Whoever is an operator need not be a member of any account.
_read = functools.partial(
    row, access=Access.CONSOLE, tags=("operator",), roles=ANYBODY, for_operators=True
)
_change = functools.partial(_read, confirms=True)
_OPERATOR = "/v1/operator"

ROUTES = (
    _read(
        f"GET {_OPERATOR}/accounts",
        Operator.accounts,
        "Page every account and its money, the newest first.",
    ),
    _change(
        f"POST {_OPERATOR}/accounts/{{account}}/credit",
        Operator.add_credit,
        "Add credit to an account; its audit says who did.",
        errors=KEY_ERRORS,
    ),
    _change(
        f"POST {_OPERATOR}/purchases/{{purchase}}/confirm",
        Operator.confirm,
        "Note that the bank transfer of a purchase came: its credit is there at once.",
        errors=(errors.PurchaseStateError,),
        is_repeatable=True,
    ),
    _read(
        f"GET {_OPERATOR}/notices",
        Operator.notices,
        "List what payment providers said that does not agree with a purchase.",
    ),
    _change(
        f"POST {_OPERATOR}/notices/{{notice}}/clear",
        Operator.clear,
        "Put a notice away that was looked into.",
        is_repeatable=True,
    ),
    _read(
        f"GET {_OPERATOR}/models",
        Operator.models,
        "List the models that answer on other servers, and how they are.",
    ),
)
