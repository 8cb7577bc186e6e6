"""``/v1/billing``: balances, the ledger, purchases, top-ups, referrals, providers' events."""

from __future__ import annotations

import functools

from sanic import HTTPResponse, Request

from steelyard import errors
from steelyard.billing.service import PurchaseService
from steelyard.billing.wire import ReceivedEvent, TransactionPage, TransactionsQuery
from steelyard.http.bodies import json_response, read_bytes, send_stream, text_response
from steelyard.http.routing import KEY_ERRORS, Access, Call, Route, row


async def get_transactions(request: Request, call: Call) -> HTTPResponse | TransactionPage | None:
    """Return a page of the ledger, or send all of it as CSV."""
    service = call.service(PurchaseService)
    if call.query.format == "json":
        return await service.transactions(call.caller, call.query)
    await send_stream(request, service.ledger_csv(call.caller), "text/csv; charset=utf-8")
    return None


async def get_receipt(_: Request, call: Call) -> HTTPResponse:
    """Return a receipt that prints."""
    body = await call.service(PurchaseService).receipt(call.caller, call.path["purchase"])
    return text_response(body, "text/html; charset=utf-8")


async def receive_event(request: Request, call: Call) -> HTTPResponse:
    """Return the result of a provider's event; its signature covers the bytes as sent."""
    body = await read_bytes(request)
    headers = {name.lower(): value for name, value in request.headers.items()}
    service = call.service(PurchaseService)
    return json_response(await service.receive(call.path["provider"], body, headers))


_console = functools.partial(
    row, access=Access.CONSOLE, tags=("billing",), roles=("owner", "billing")
)
_read = functools.partial(_console, takes_keys=True)
_change = functools.partial(_console, confirms=True)
_OFF = (errors.AccountsOffError,)

ROUTES = (
    _read(
        "GET /v1/billing",
        PurchaseService.billing,
        "Return an account's balances, top-up, payment method and limits.",
        errors=_OFF,
    ),
    _read(
        "GET /v1/billing/transactions",
        handler=get_transactions,
        summary="Page the account's ledger, the newest line first, or send all of it as CSV.",
        query=TransactionsQuery,
        also_answers=("text/csv",),
        response=TransactionPage,
        errors=_OFF,
    ),
    _change(
        "POST /v1/billing/purchases",
        PurchaseService.create,
        "Buy credit; it is there when the provider says that it is paid.",
        errors=(*KEY_ERRORS, errors.PaymentProviderError, errors.PurchaseStateError),
    ),
    _read(
        "GET /v1/billing/purchases",
        PurchaseService.purchases,
        "Page the account's purchases, the newest first.",
        errors=_OFF,
    ),
    _read(
        "GET /v1/billing/purchases/{purchase}",
        PurchaseService.purchase,
        "Return a purchase.",
        errors=_OFF,
    ),
    _read(
        "GET /v1/billing/purchases/{purchase}/receipt",
        handler=get_receipt,
        summary="Return the receipt of a paid purchase, as HTML that prints.",
        media_type="text/html",
        errors=(*_OFF, errors.PurchaseStateError),
    ),
    _change(
        "PUT /v1/billing/top-up",
        PurchaseService.set_top_up,
        "Have the account buy by itself when less than a threshold is available.",
        errors=(*KEY_ERRORS, errors.NoPaymentMethodError),
    ),
    _change(
        "DELETE /v1/billing/top-up",
        PurchaseService.end_top_up,
        "Have the account buy no more by itself.",
        errors=KEY_ERRORS,
    ),
    _read(
        "GET /v1/billing/referral",
        PurchaseService.referral,
        "Return the account's own referral code, and what came of it.",
        errors=_OFF,
    ),
    _change(
        "POST /v1/billing/referral/redeem",
        PurchaseService.redeem,
        "Redeem a referral code before a first purchase.",
        errors=(*KEY_ERRORS, errors.ReferralRefusedError),
    ),
    Route(
        method="POST",
        path="/v1/billing/providers/{provider}/events",
        handler=receive_event,
        summary="Receive a payment provider's signed event.",
        access=Access.PUBLIC,
        tags=("billing",),
        response=ReceivedEvent,
        errors=(*_OFF, errors.NotFoundError, errors.InvalidSignatureError),
    ),
)
