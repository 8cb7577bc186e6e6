"""Money held for work that outlives its request: held as it is accepted, settled when it ends.

Such an operation belongs to no process: the end of the work settles it, in the same transaction.
"""

from __future__ import annotations

from sqlalchemy import Connection

from steelyard.errors import InsufficientCreditError, KeyCapReachedError
from steelyard.ledger import books as ledger
from steelyard.ledger.books import utc_month
from steelyard.ledger.money import to_usd
from steelyard.ledger.store import Whose, add_to_month, available, post, spendable
from steelyard.operations import store as rows
from steelyard.operations.low_balance import publish_low_balance


def require_credit(connection: Connection, account_id: str, amount_nano: int, what: str) -> None:
    """Refuse work that an account has not the money for."""
    has = available(connection, account_id)
    if has < amount_nano:
        raise InsufficientCreditError(
            f"{what} costs {to_usd(amount_nano)} USD and the account has "
            f"{to_usd(max(has, 0))} USD available; add credit."
        )


def hold(
    connection: Connection,
    operation_id: str,
    *,
    account_id: str,
    key_id: str | None,
    route: str,
    what: str,
    amount_nano: int,
    at: float,
) -> None:
    """Hold the highest price of work; the caller has checked that credit covers it."""
    month = utc_month(at)
    if key_id is not None:
        left = spendable(connection, Whose(account_id, key_id, month)).left_of_cap_nano
        if left is not None and left < amount_nano:
            raise KeyCapReachedError(
                f"This holds {to_usd(amount_nano)} USD and the API key has "
                f"{to_usd(max(left, 0))} USD left of its cap of this month (UTC); use another key, "
                "or one with a higher cap."
            )
    rows.insert_operation(
        connection,
        rows.OperationRow(
            id=operation_id,
            account_id=account_id,
            key_id=key_id,
            route=route,
            idempotency_key=None,
            model=what,
            state="pending",
            instance=None,
            lease_until=None,
            accepted_at=at,
            ended_at=None,
            reserved_nano=amount_nano,
            amount_nano=0,
        ),
    )
    posting = ledger.hold(amount_nano)
    before_nano = available(connection, account_id)
    post(connection, posting, operation_id=operation_id, account_id=account_id, at=at)
    publish_low_balance(
        connection, account_id, before_nano=before_nano, after_nano=before_nano - amount_nano
    )
    if key_id is not None:
        add_to_month(connection, key_id, month, held_nano=amount_nano)


def settle(
    connection: Connection, operation_id: str, *, reserved_nano: int, amount_nano: int, at: float
) -> None:
    """Charge a part of the hold and release the rest; a second call changes nothing."""
    operation = rows.find_operation(connection, operation_id)
    if operation is None or operation.reserved_nano != reserved_nano:
        raise ValueError(f"{reserved_nano} nano-USD are not held as {operation_id}.")
    is_pending = rows.end_operation(
        connection,
        operation_id,
        state="succeeded" if amount_nano else "released",
        amount_nano=amount_nano,
        at=at,
    )
    if not is_pending:
        return
    posting = ledger.settlement(reserved_nano, amount_nano)
    post(connection, posting, operation_id=operation_id, account_id=operation.account_id, at=at)
    if operation.key_id is not None:
        # It counts towards the month in which it was held, whenever it ends.
        add_to_month(
            connection,
            operation.key_id,
            utc_month(operation.accepted_at),
            spent_nano=amount_nano,
            held_nano=-reserved_nano,
        )
