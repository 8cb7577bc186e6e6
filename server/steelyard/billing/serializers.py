"""Rows of money as the wire has them, as CSV, and as a receipt that prints."""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.billing import wire
from steelyard.ledger.money import to_usd
from steelyard.wire.filling import filled

CSV_HEAD = codecs.BOM_UTF8 + b"id,created_at,operation_id,route,model,book,amount_usd\r\n"


def purchase(row: Any) -> wire.Purchase:
    """Return a purchase."""
    return filled(wire.Purchase, row, amount_usd=to_usd(row.amount_nano))


def top_up(row: Any) -> wire.TopUp:
    """Return when an account buys by itself."""
    return wire.TopUp(
        threshold_usd=to_usd(row.threshold_nano),
        amount_usd=to_usd(row.amount_nano),
        monthly_cap_usd=to_usd(row.monthly_cap_nano),
        is_on=row.off_at is None,
        failures=row.failures,
        under_way=row.purchase_id,
        off_at=row.off_at,
    )


def billing(
    books: Mapping[str, int], *, provider: str, top_up: Any, card: Any, least: int, most: int
) -> wire.Billing:
    """Return an account's money."""
    promotional = max(books["promotional"], 0)
    available = books["paid"] + books["promotional"]
    balance = available + books["held"]
    return wire.Billing(
        paid_usd=to_usd(balance - promotional),
        promotional_usd=to_usd(promotional),
        balance_usd=to_usd(balance),
        available_usd=to_usd(max(available, 0)),
        reserved_usd=to_usd(books["held"]),
        pending_usd=to_usd(books["purchases_pending"]),
        spent_usd=to_usd(books["revenue"]),
        refunded_usd=to_usd(books["refunds"]),
        provider=provider,
        top_up=None if top_up is None else _top_up(top_up),
        payment_method=(
            None
            if card is None or card.method is None
            else wire.PaymentMethod(brand=card.brand, last4=card.last4)
        ),
        limits=wire.PurchaseLimits(minimum_usd=to_usd(least), maximum_usd=to_usd(most)),
    )


_top_up = top_up


def transaction(row: Any) -> wire.Transaction:
    """Return a line of the ledger."""
    return filled(wire.Transaction, row, id=str(row.id), amount_usd=to_usd(row.amount_nano))


def csv_lines(rows: Sequence[Any]) -> bytes:
    """Return lines of the ledger as CSV."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows(
        (
            row.id,
            _iso(row.created_at),
            row.operation_id,
            row.route,
            row.model,
            row.book,
            to_usd(row.amount_nano),
        )
        for row in rows
    )
    return out.getvalue().encode()


def parked_event(row: Any) -> wire.ParkedNotice:
    """Return a parked event."""
    return filled(wire.ParkedNotice, row, reason=row.reason or "")


def receipt(row: Any, account: str) -> bytes:
    """Return a receipt as HTML that prints; without style, which a page of this server may not have."""
    lines = [
        ("Receipt", row.id),
        ("Account", account),
        ("For", "Steelyard credit" + (", automatic top-up" if row.is_top_up else "")),
        ("Amount", f"{to_usd(row.amount_nano)} USD"),
        ("Paid", _iso(row.paid_at)),
        ("Paid by", "bank transfer" if row.provider == "manual" else row.provider),
    ]
    if row.state != "paid":
        lines.append((row.state.capitalize(), _iso(row.ended_at)))
    cells = "".join(
        f'<tr><th scope="row" align="left">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>'
        for name, value in lines
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Receipt {html.escape(row.id)}</title></head>"
        f'<body><h1>Receipt</h1><table cellpadding="6">{cells}</table></body></html>'
    ).encode()


def _iso(at: float) -> str:
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
