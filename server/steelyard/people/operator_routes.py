"""``/v1/operator``: the whole server, for signed-in operators."""

from __future__ import annotations

import functools

from steelyard import errors
from steelyard.billing.wire import Purchase
from steelyard.http.routing import Access, Route
from steelyard.people.operator_service import Operator
from steelyard.people.operator_wire import (
    AccountEntry,
    AccountEntryPage,
    AccountsQuery,
    AddCredit,
    ClearedNotice,
    ConnectedModelList,
    ParkedNoticeList,
)
from steelyard.people.roles import ANYBODY

# Whoever is an operator need not be a member of any account.
_read = functools.partial(
    Route,
    method="GET",
    access=Access.CONSOLE,
    tags=("operator",),
    roles=ANYBODY,
    for_operators=True,
)
_change = functools.partial(_read, method="POST", confirms=True)

ROUTES = (
    _read(
        path="/v1/operator/accounts",
        use=lambda call: call.service(Operator).accounts(call.query),
        summary="Page every account and its money, the newest first.",
        query=AccountsQuery,
        response=AccountEntryPage,
    ),
    _change(
        path="/v1/operator/accounts/{account}/credit",
        use=lambda call: call.service(Operator).add_credit(
            call.write, call.path["account"], call.body
        ),
        summary="Add credit to an account; its audit says who did.",
        request=AddCredit,
        response=AccountEntry,
        errors=(errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError),
    ),
    _change(
        path="/v1/operator/purchases/{purchase}/confirm",
        use=lambda call: call.service(Operator).confirm(call.path["purchase"]),
        summary="Note that the bank transfer of a purchase came: its credit is there at once.",
        response=Purchase,
        errors=(errors.PurchaseStateError,),
    ),
    _read(
        path="/v1/operator/notices",
        use=lambda call: call.service(Operator).notices(),
        summary="List what payment providers said that does not agree with a purchase.",
        response=ParkedNoticeList,
    ),
    _change(
        path="/v1/operator/notices/{notice}/clear",
        use=lambda call: call.service(Operator).clear(call.path["notice"]),
        summary="Put a notice away that was looked into.",
        response=ClearedNotice,
    ),
    _read(
        path="/v1/operator/models",
        use=lambda call: call.service(Operator).models(),
        summary="List the models that answer on other servers, and how they are.",
        response=ConnectedModelList,
    ),
)
