"""Rows of purchases, of providers' events, top-ups and cards."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, delete, exists, func, insert, literal, or_, select, update

from steelyard.billing.notices import Card, Notice
from steelyard.billing.tables import (
    billing_events,
    payment_methods,
    provider_events,
    purchases,
    top_ups,
)
from steelyard.ledger.tables import balances, ledger_entries
from steelyard.operations.tables import operations
from steelyard.storage.rows import Rows
from steelyard.storage.statements import Statement
from steelyard.storage.tables import accounts

PURCHASES = Rows(purchases)


def insert_purchase(connection: Connection, **values: Any) -> None:
    """Write a new purchase; the values are by column of ``tables.purchases``."""
    connection.execute(insert(purchases), values)


def find_purchase(
    connection: Connection, purchase_id: str, account_id: str | None = None
) -> Row[Any] | None:
    """Return a purchase, of an account where one is named."""
    query = select(purchases).where(purchases.c.id == purchase_id)
    if account_id is not None:
        query = query.where(purchases.c.account_id == account_id)
    return connection.execute(query).first()


def find_keyed(connection: Connection, account_id: str, key: str) -> Row[Any] | None:
    """Return the purchase that a request with an idempotency key began."""
    return connection.execute(
        select(purchases).where(
            purchases.c.account_id == account_id, purchases.c.idempotency_key == key
        )
    ).first()


def lock_noticed(connection: Connection, provider: str, notice: Notice) -> Row[Any] | None:
    """Return the purchase that a notice names, for a change by this transaction alone."""
    query = select(purchases).where(purchases.c.provider == provider).with_for_update()
    if notice.purchase_id is not None:
        return connection.execute(query.where(purchases.c.id == notice.purchase_id)).first()
    if notice.payment is not None:
        return connection.execute(query.where(purchases.c.payment == notice.payment)).first()
    return None


def has_paid(connection: Connection, account_id: str) -> bool:
    """Whether a purchase of an account was ever paid."""
    query = select(purchases.c.id).where(
        purchases.c.account_id == account_id, purchases.c.paid_at.is_not(None)
    )
    return connection.execute(query.limit(1)).first() is not None


#: Asked every second by every server, as a rule in vain.
_FIRST_WAITING = Statement(
    select(literal(1)).where(
        or_(
            exists().where(purchases.c.state == "pending"),
            exists().where(top_ups.c.off_at.is_(None)),
            exists().where(payment_methods.c.method.is_(None)),
        )
    )
)


def is_anything_waiting(connection: Connection) -> bool:
    """Return whether there is a purchase, an automatic one or a card that time may change."""
    return _FIRST_WAITING.first(connection, {}) is not None


def expired_purchases(connection: Connection, now: float, limit: int) -> list[Row[Any]]:
    """Return pending purchases whose time is over."""
    return list(
        connection.execute(
            select(purchases)
            .where(purchases.c.state == "pending", purchases.c.expires_at <= now)
            .limit(limit)
        )
    )


def uncharged_top_ups(connection: Connection, provider: str, limit: int) -> list[Row[Any]]:
    """Return automatic purchases that the provider has not answered yet."""
    return list(
        connection.execute(
            select(purchases)
            .where(
                purchases.c.state == "pending",
                purchases.c.is_top_up,
                purchases.c.reference.is_(None),
                purchases.c.provider == provider,
            )
            .limit(limit)
        )
    )


def topped_up_since(connection: Connection, account_id: str, since: float) -> int:
    """Return the total of an account's automatic purchases since a time, in nano-USD."""
    return int(
        connection.execute(
            select(func.coalesce(func.sum(purchases.c.amount_nano), 0)).where(
                purchases.c.account_id == account_id,
                purchases.c.is_top_up,
                purchases.c.created_at >= since,
                purchases.c.state.not_in(["failed", "expired"]),
            )
        ).scalar_one()
    )


def find_event(connection: Connection, provider: str, event_id: str) -> Row[Any] | None:
    """Return an event that came before."""
    return connection.execute(
        select(provider_events).where(
            provider_events.c.provider == provider, provider_events.c.id == event_id
        )
    ).first()


def insert_event(connection: Connection, **values: Any) -> None:
    """Write an event; the values are by column of ``tables.provider_events``."""
    connection.execute(insert(provider_events), values)


def end_event(
    connection: Connection, provider: str, event_id: str, outcome: str, reason: str | None = None
) -> None:
    """Write the result of an event that waited or was parked."""
    connection.execute(
        update(provider_events)
        .where(provider_events.c.provider == provider, provider_events.c.id == event_id)
        .values(outcome=outcome, reason=reason)
    )


def waiting_events(connection: Connection, purchase_id: str) -> list[Row[Any]]:
    """Return a purchase's events that wait for another one, in the order in which they came."""
    return list(
        connection.execute(
            select(provider_events)
            .where(
                provider_events.c.purchase_id == purchase_id,
                provider_events.c.outcome == "waiting",
            )
            .order_by(provider_events.c.received_at)
        )
    )


def parked_events(connection: Connection, limit: int) -> list[Row[Any]]:
    """Return events that an operator should look at, the oldest first."""
    return list(
        connection.execute(
            select(provider_events)
            .where(provider_events.c.outcome == "parked")
            .order_by(provider_events.c.received_at)
            .limit(limit)
        )
    )


def find_top_up(connection: Connection, account_id: str) -> Row[Any] | None:
    """Return when an account buys by itself."""
    return connection.execute(select(top_ups).where(top_ups.c.account_id == account_id)).first()


def put_top_up(connection: Connection, account_id: str, **values: Any) -> None:
    """Write when an account buys by itself, keeping the purchase that is under way."""
    changed = connection.execute(
        update(top_ups).where(top_ups.c.account_id == account_id).values(**values)
    )
    if changed.rowcount == 0:
        under_way = connection.execute(
            select(purchases.c.id).where(
                purchases.c.account_id == account_id,
                purchases.c.is_top_up,
                purchases.c.state == "pending",
            )
        ).scalar()
        connection.execute(
            insert(top_ups), {"account_id": account_id, "purchase_id": under_way, **values}
        )


def delete_top_up(connection: Connection, account_id: str) -> bool:
    """End automatic purchases; return whether there were any."""
    ended = connection.execute(delete(top_ups).where(top_ups.c.account_id == account_id))
    return ended.rowcount == 1


def low_accounts(connection: Connection, limit: int) -> list[str]:
    """Return accounts that have less than the threshold of their automatic purchases."""
    has = (
        select(func.coalesce(func.sum(balances.c.amount_nano), 0))
        .where(
            balances.c.account_id == top_ups.c.account_id,
            balances.c.book.in_(["paid", "promotional"]),
        )
        .scalar_subquery()
    )
    query = select(top_ups.c.account_id).where(
        top_ups.c.purchase_id.is_(None), top_ups.c.off_at.is_(None), has < top_ups.c.threshold_nano
    )
    return list(connection.execute(query.limit(limit)).scalars())


def begin_top_up(connection: Connection, account_id: str, purchase_id: str) -> bool:
    """Note the purchase under way; return whether there was none, so that it is the only one."""
    begun = connection.execute(
        update(top_ups)
        .where(
            top_ups.c.account_id == account_id,
            top_ups.c.purchase_id.is_(None),
            top_ups.c.off_at.is_(None),
        )
        .values(purchase_id=purchase_id)
    )
    return begun.rowcount == 1


def find_card(connection: Connection, account_id: str, provider: str) -> Row[Any] | None:
    """Return an account's saved card, as far as it is known."""
    return connection.execute(
        select(payment_methods).where(
            payment_methods.c.account_id == account_id, payment_methods.c.provider == provider
        )
    ).first()


def put_card(
    connection: Connection, account_id: str, *, provider: str, payment: str, customer: str
) -> None:
    """Write which payment used a card last; its details are fetched later."""
    connection.execute(delete(payment_methods).where(payment_methods.c.account_id == account_id))
    connection.execute(
        insert(payment_methods),
        {
            "account_id": account_id,
            "provider": provider,
            "payment": payment,
            "customer": customer,
        },
    )


def unknown_cards(connection: Connection, provider: str, limit: int) -> list[Row[Any]]:
    """Return the saved cards of which nothing is known yet."""
    return list(
        connection.execute(
            select(payment_methods)
            .where(payment_methods.c.method.is_(None), payment_methods.c.provider == provider)
            .limit(limit)
        )
    )


def describe_card(connection: Connection, account_id: str, payment: str, card: Card) -> None:
    """Write the provider's description of the card behind a payment."""
    connection.execute(
        update(payment_methods)
        .where(payment_methods.c.account_id == account_id, payment_methods.c.payment == payment)
        .values(customer=card.customer, method=card.method, brand=card.brand, last4=card.last4)
    )


def insert_billing_event(connection: Connection, **values: Any) -> None:
    """Write a message for an account's owners."""
    connection.execute(insert(billing_events), values)


def oldest_billing_event(connection: Connection) -> Row[Any] | None:
    """Return the oldest unsent message for owners."""
    query = select(billing_events).order_by(billing_events.c.created_at).limit(1)
    return connection.execute(query).first()


def delete_billing_event(connection: Connection, event_id: str) -> bool:
    """Remove a message to owners; return whether it was still there."""
    where = billing_events.c.id == event_id
    return connection.execute(delete(billing_events).where(where)).rowcount == 1


def page_transactions(
    connection: Connection, account_id: str, *, limit: int, before: int | None
) -> list[Row[Any]]:
    """Return lines of an account's ledger with their operations, the newest first."""
    query = (
        select(
            ledger_entries.c.id,
            ledger_entries.c.operation_id,
            operations.c.route,
            operations.c.model,
            ledger_entries.c.book,
            ledger_entries.c.amount_nano,
            ledger_entries.c.created_at,
        )
        .join(operations, operations.c.id == ledger_entries.c.operation_id)
        .where(ledger_entries.c.account_id == account_id)
    )
    if before is not None:
        query = query.where(ledger_entries.c.id < before)
    return list(connection.execute(query.order_by(ledger_entries.c.id.desc()).limit(limit)))


def find_account(connection: Connection, account: str) -> Row[Any] | None:
    """Return an account by its id or its name."""
    return connection.execute(
        select(accounts).where(or_(accounts.c.id == account, accounts.c.name == account))
    ).first()
