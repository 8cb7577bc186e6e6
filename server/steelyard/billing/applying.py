"""The transactions of a purchase: start it, and apply each provider event once."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, Row

from steelyard.billing import referrals, states
from steelyard.billing import store as rows
from steelyard.billing.notices import Ask, Notice, disagreement
from steelyard.ids import new_id
from steelyard.ledger import books as ledger
from steelyard.ledger.money import to_usd
from steelyard.ledger.store import available, post
from steelyard.operations.low_balance import publish_low_balance
from steelyard.operations.posting import post_operation
from steelyard.outbox.publishing import publish
from steelyard.wire.decoding import decode

Outcome = Literal["applied", "ignored", "waiting", "parked", "cleared"]

#: Automatic purchases that fail in a row before they end.
MAX_FAILURES = 3
_OUTCOMES: dict[states.Step, Outcome] = {
    "apply": "applied",
    "ignore": "ignored",
    "wait": "waiting",
    "park": "parked",
}


def begin(
    connection: Connection,
    purchase_id: str,
    *,
    account_id: str,
    provider: str,
    amount_nano: int,
    now: float,
    lifetime_s: float,
    key: str | None = None,
    is_top_up: bool = False,
) -> None:
    """Write a purchase that is not paid yet."""
    route = "top_up" if is_top_up else "purchase"
    posting = ledger.purchase(amount_nano)
    rows.insert_purchase(
        connection,
        id=purchase_id,
        account_id=account_id,
        operation_id=post_operation(connection, account_id, route, posting, amount_nano, now),
        idempotency_key=key,
        provider=provider,
        state="pending",
        amount_nano=amount_nano,
        is_top_up=is_top_up,
        created_at=now,
        expires_at=now + lifetime_s,
    )


def ask_of(purchase: Row[Any]) -> Ask:
    """Return a provider's request for a purchase."""
    return Ask(
        purchase_id=purchase.id,
        account_id=purchase.account_id,
        amount_nano=purchase.amount_nano,
        payment=purchase.payment,
    )


def notice_of(purchase: Row[Any], kind: states.NoticeKind) -> Notice:
    """Return a notice that this server itself makes of a purchase."""
    return Notice(
        kind=kind,
        amount_nano=purchase.amount_nano,
        purchase_id=purchase.id,
        account_id=purchase.account_id,
    )


def take(
    connection: Connection,
    provider: str,
    event_id: str,
    notice: Notice,
    *,
    now: float,
    referral_nano: int,
) -> Outcome:
    """Store an event and apply it once: a second time changes nothing."""
    purchase = rows.lock_noticed(connection, provider, notice)
    known = rows.find_event(connection, provider, event_id)
    if known is not None:
        outcome: Outcome = known.outcome
        return outcome
    reason = disagreement(
        notice,
        account_id=None if purchase is None else purchase.account_id,
        amount_nano=None if purchase is None else purchase.amount_nano,
        reference=None if purchase is None else purchase.reference,
    )
    outcome = "parked"
    if reason is None and purchase is not None:
        outcome, reason = _apply(connection, purchase, notice, now, referral_nano)
    rows.insert_event(
        connection,
        provider=provider,
        id=event_id,
        purchase_id=None if purchase is None else purchase.id,
        received_at=now,
        outcome=outcome,
        reason=reason,
        notice=msgspec.json.encode(notice),
    )
    if purchase is not None and outcome == "applied":
        _apply_waiting(connection, purchase.id, now, referral_nano)
    return outcome


def _apply(
    connection: Connection, purchase: Row[Any], notice: Notice, now: float, referral_nano: int
) -> tuple[Outcome, str | None]:
    step = states.step(purchase.state, notice.kind)
    if step == "apply":
        _change(connection, purchase, notice, now, referral_nano)
    reason = None
    if step == "park":
        reason = f"It says {notice.kind}, and the purchase is {purchase.state}."
    elif step == "ignore" and _is_another_payment(purchase, notice):
        step = "park"
        reason = (
            f"{notice.payment} paid for it a second time, after {purchase.payment}; send one of the "
            "two back."
        )
    return _OUTCOMES[step], reason


def _is_another_payment(purchase: Row[Any], notice: Notice) -> bool:
    known = purchase.payment
    return notice.kind == "paid" and None not in (known, notice.payment) and known != notice.payment


def _change(
    connection: Connection, purchase: Row[Any], notice: Notice, now: float, referral_nano: int
) -> None:
    kind = notice.kind
    before_nano = available(connection, purchase.account_id)
    post(
        connection,
        states.posting(kind, purchase.amount_nano),
        operation_id=purchase.operation_id,
        account_id=purchase.account_id,
        at=now,
    )
    changed: dict[str, Any] = {"state": kind, "paid_at" if kind == "paid" else "ended_at": now}
    if notice.payment is not None:
        changed["payment"] = notice.payment
    rows.PURCHASES.change(connection, purchase.id, **changed)
    publish_low_balance(
        connection,
        purchase.account_id,
        before_nano=before_nano,
        after_nano=available(connection, purchase.account_id),
    )
    if kind == "paid":
        amount = {"amount_usd": to_usd(purchase.amount_nano), "is_top_up": bool(purchase.is_top_up)}
        publish(connection, purchase.account_id, "purchase.paid", purchase.id, amount)
        referrals.grant(connection, purchase.account_id, referral_nano, now)
        if notice.payment is not None and notice.customer is not None and not purchase.is_top_up:
            rows.put_card(
                connection,
                purchase.account_id,
                provider=purchase.provider,
                payment=notice.payment,
                customer=notice.customer,
            )
    if purchase.is_top_up and purchase.state == "pending":
        _end_top_up(connection, purchase, kind, now)


def _end_top_up(
    connection: Connection, purchase: Row[Any], kind: states.NoticeKind, now: float
) -> None:
    top_up = rows.find_top_up(connection, purchase.account_id)
    if top_up is None or top_up.purchase_id != purchase.id:
        return
    failures = 0 if kind == "paid" else top_up.failures + 1
    off_at = now if failures >= MAX_FAILURES else top_up.off_at
    rows.put_top_up(
        connection, purchase.account_id, purchase_id=None, failures=failures, off_at=off_at
    )
    if off_at is not None and top_up.off_at is None:
        rows.insert_billing_event(
            connection,
            id=new_id("bev"),
            account_id=purchase.account_id,
            kind="top_up_off",
            message=(
                f"Automatic top-ups are off: {failures} in a row were not paid, the last one "
                f"{purchase.id}. Look at the payment method and set them again."
            ),
            created_at=now,
        )


def _apply_waiting(
    connection: Connection, purchase_id: str, now: float, referral_nano: int
) -> None:
    """Apply the events that came too early, in the order of the states."""
    waiting = [
        (row, decode(row.notice, Notice)) for row in rows.waiting_events(connection, purchase_id)
    ]
    waiting.sort(key=lambda event: states.ORDER.index(event[1].kind))
    for row, notice in waiting:
        purchase = rows.find_purchase(connection, purchase_id)
        assert purchase is not None  # noqa: S101  it was changed in this transaction
        outcome, reason = _apply(connection, purchase, notice, now, referral_nano)
        rows.end_event(connection, row.provider, row.id, outcome, reason)
