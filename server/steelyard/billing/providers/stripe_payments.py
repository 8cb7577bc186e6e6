"""Stripe: Checkout for purchases, the card it saves for top-ups, refunds, disputes, events.

Each request for a purchase has an idempotency key made of its id, so that a process which died
before it heard the answer asks again and gets the same one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import stripe

from steelyard.billing.notices import CURRENCY, Ask, Begun, Card, Notice, ProviderEvent
from steelyard.billing.states import NoticeKind
from steelyard.errors import InvalidRequestError, InvalidSignatureError, PaymentProviderError
from steelyard.wire.decoding import decode
from steelyard.wire.violations import show

T = TypeVar("T")

# Else the library makes an identifier of this machine, keeps it in the user's settings and sends it.
stripe.enable_telemetry = False

_DAY_S = 86_400.0
_TIMEOUT_S = 10.0
#: Seconds by which an event's time may differ from this server's.
_TOLERANCE_S = 300
_NANO_A_CENT = 10_000_000
#: More than any payment has; the nano-USD of it fit into 64 bits.
_MOST_CENTS = 10**11
#: Tells payments of top-ups from those that Checkout makes, of which its own events tell.
_TOP_UP = "top_up"

_SESSIONS: dict[str, NoticeKind] = {
    "checkout.session.completed": "paid",
    "checkout.session.async_payment_succeeded": "paid",
    "checkout.session.async_payment_failed": "failed",
    "checkout.session.expired": "expired",
}
_PAYMENTS: dict[str, NoticeKind] = {
    "payment_intent.succeeded": "paid",
    "payment_intent.payment_failed": "failed",
    "payment_intent.canceled": "failed",
}
#: A partial refund has another amount than its purchase, and is parked.
_BACK: dict[str, tuple[NoticeKind, str]] = {
    "charge.refunded": ("refunded", "amount_refunded"),
    "charge.dispute.created": ("disputed", "amount"),
}


class StripeProvider:
    """Takes payments by Stripe's API."""

    name = "stripe"
    lifetime_s = 2 * _DAY_S
    needs_card = True

    def __init__(
        self, key: str, events_secret: str, *, return_url: str, api_url: str | None = None
    ) -> None:
        client = stripe.StripeClient(
            key,
            base_addresses={"api": api_url.rstrip("/")} if api_url else {},
            http_client=stripe.RequestsClient(timeout=_TIMEOUT_S),
            max_network_retries=1,
        )
        self._api = client.v1
        self._secret = events_secret
        self._return_url = return_url

    def begin(self, ask: Ask) -> Begun:
        """Open a Checkout page that also saves the card."""
        metadata = _metadata(ask)
        session = _call_stripe(
            lambda: self._api.checkout.sessions.create(
                {
                    "mode": "payment",
                    "client_reference_id": ask.purchase_id,
                    "metadata": metadata,
                    "customer_creation": "always",
                    "payment_intent_data": {
                        "metadata": metadata,
                        "setup_future_usage": "off_session",
                    },
                    "line_items": [
                        {
                            "quantity": 1,
                            "price_data": {
                                "currency": CURRENCY,
                                "unit_amount": _cents(ask.amount_nano),
                                "product_data": {"name": "Steelyard credit"},
                            },
                        }
                    ],
                    "success_url": self._return_url,
                    "cancel_url": self._return_url,
                },
                {"idempotency_key": f"begin-{ask.purchase_id}"},
            )
        )
        return Begun(reference=session.id, checkout_url=session.url)

    def charge(self, ask: Ask, card: Card | None) -> Begun:
        """Charge the saved card; a card that is declined is a failed purchase."""
        if card is None:
            return Begun(notice=_own_notice(ask, "failed"))
        try:
            payment = _call_stripe(
                lambda: self._api.payment_intents.create(
                    {
                        "amount": _cents(ask.amount_nano),
                        "currency": CURRENCY,
                        "customer": card.customer,
                        "payment_method": card.method,
                        "confirm": True,
                        "off_session": True,
                        "metadata": {**_metadata(ask), "kind": _TOP_UP},
                    },
                    {"idempotency_key": f"charge-{ask.purchase_id}"},
                )
            )
        except stripe.CardError:
            return Begun(notice=_own_notice(ask, "failed"))
        notice_kinds: dict[str, NoticeKind] = {
            "succeeded": "paid",
            "requires_action": "failed",  # no person is there to act
            "requires_payment_method": "failed",
            "canceled": "failed",
        }
        kind = notice_kinds.get(payment.status)
        notice = None
        if kind is not None:
            notice = Notice(
                kind=kind,
                amount_nano=payment.amount * _NANO_A_CENT,
                currency=payment.currency,
                purchase_id=ask.purchase_id,
                account_id=ask.account_id,
                payment=payment.id,
            )
        return Begun(reference=payment.id, notice=notice)

    def refund(self, ask: Ask) -> Notice | None:
        """Send all of a payment back."""
        if ask.payment is None:
            raise PaymentProviderError(
                f"Stripe's payment of {ask.purchase_id} is not known; refund it in Stripe's dashboard."
            )
        payment = ask.payment
        refund = _call_stripe(
            lambda: self._api.refunds.create(
                {"payment_intent": payment, "metadata": _metadata(ask)},
                {"idempotency_key": f"refund-{ask.purchase_id}"},
            )
        )
        if refund.status == "succeeded":
            return Notice(
                kind="refunded",
                amount_nano=refund.amount * _NANO_A_CENT,
                currency=refund.currency,
                purchase_id=ask.purchase_id,
                account_id=ask.account_id,
                payment=payment,
            )
        return None

    def card_of(self, payment: str) -> Card | None:
        """Return the card that a payment was made with."""
        intent = _call_stripe(lambda: self._api.payment_intents.retrieve(payment))
        customer, method = _id(intent.customer), _id(intent.payment_method)
        if customer is None or method is None:
            return None
        card = _call_stripe(lambda: self._api.payment_methods.retrieve(method)).card
        if card is None:
            return None
        return Card(customer=customer, method=method, brand=card.brand, last4=card.last4)

    def read(self, body: bytes, headers: Mapping[str, str]) -> ProviderEvent:
        """Return an event whose signature is Stripe's; it is compared in constant time."""
        signature = headers.get("stripe-signature", "")
        try:
            stripe.WebhookSignature.verify_header(
                body.decode(), signature, self._secret, _TOLERANCE_S
            )
            _check_not_ahead(signature)
        except (stripe.SignatureVerificationError, ValueError) as error:
            raise InvalidSignatureError(
                "The event is not signed with this server's secret, or its time is more than five "
                "minutes from this server's; look at stripe_events_secret "
                "(STEELYARD_STRIPE_EVENTS_SECRET) and the clock."
            ) from error
        try:
            event = decode(body, dict[str, Any])
            kind, payload = event["type"], event["data"]["object"]
            return ProviderEvent(id=str(event["id"])[:255], notice=_notice_of(kind, payload))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InvalidRequestError(
                "The event is signed, but it is not an event as Stripe sends them; look at what sends "
                "it, and send it again."
            ) from error


def _check_not_ahead(signature: str) -> None:
    """Raise ``ValueError`` for an event of a time to come; Stripe's package looks for old ones alone."""
    parts = (part.partition("=") for part in signature.split(","))
    at = max(int(value) for name, _, value in parts if name.strip() == "t")
    if at > time.time() + _TOLERANCE_S:
        raise ValueError("The event was signed at a time to come.")


def _notice_of(kind: str, payload: Mapping[str, Any]) -> Notice | None:
    """Return the notice that an event gives of a purchase; ``None`` for other events."""
    metadata = payload.get("metadata") or {}
    payment = payload.get("payment_intent")
    if kind in _SESSIONS and "purchase_id" in metadata:
        if kind == "checkout.session.completed" and payload.get("payment_status") != "paid":
            return None  # another event reports the payment
        notice_kind, amount = _SESSIONS[kind], "amount_total"
    elif kind in _PAYMENTS and metadata.get("kind") == _TOP_UP:
        notice_kind, amount, payment = _PAYMENTS[kind], "amount", payload["id"]
    elif kind in _BACK:
        notice_kind, amount = _BACK[kind]
    else:
        return None
    cents: Any = payload.get(amount)
    is_usable = type(cents) is int and 0 <= cents <= _MOST_CENTS
    return Notice(
        kind=notice_kind,
        amount_nano=cents * _NANO_A_CENT if is_usable else 0,
        unusable=None
        if is_usable
        else f"Its {amount} is {show(cents)}, and not an amount in cents.",
        currency=str(payload.get("currency")),
        purchase_id=_text(metadata.get("purchase_id")),
        account_id=_text(metadata.get("account_id")),
        payment=_id(payment),
        customer=_id(payload.get("customer")),
        session=_text(payload.get("id")) if kind in _SESSIONS else None,
    )


def _call_stripe(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except stripe.CardError:
        raise
    except stripe.StripeError as error:
        raise PaymentProviderError(
            f"Stripe did not do what was asked: {error.user_message or type(error).__name__}. Nothing "
            "was bought; try again."
        ) from error


def _own_notice(ask: Ask, kind: NoticeKind) -> Notice:
    return Notice(
        kind=kind,
        amount_nano=ask.amount_nano,
        purchase_id=ask.purchase_id,
        account_id=ask.account_id,
    )


def _metadata(ask: Ask) -> dict[str, str]:
    return {"purchase_id": ask.purchase_id, "account_id": ask.account_id}


def _cents(amount_nano: int) -> int:
    return amount_nano // _NANO_A_CENT


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _id(named: Any) -> str | None:
    """Return an id that Stripe gives as text or within an object."""
    if named is None or isinstance(named, str):
        return named
    stripe_id: str = named["id"]
    return stripe_id
