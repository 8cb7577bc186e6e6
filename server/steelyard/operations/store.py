"""Rows of operations and of idempotency keys; the rules are in ``steelyard.operations.service``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select, update

from steelyard.ledger.tables import ledger_entries
from steelyard.operations.tables import idempotency_keys, operations
from steelyard.storage.statements import Call, Statement, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """One operation, as the table holds it; see ``tables.operations``."""

    id: str
    account_id: str
    key_id: str | None
    route: str
    idempotency_key: str | None
    model: str
    state: str
    instance: str | None
    lease_until: float | None
    accepted_at: float
    ended_at: float | None
    reserved_nano: int
    amount_nano: int
    input_tokens: int | None = None
    n_decisions: int | None = None
    named: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """One idempotency key in use, as the table holds it; see ``tables.idempotency_keys``."""

    account_id: str
    route: str
    key: str
    payload_sha256: str
    state: str
    operation_id: str | None
    body: bytes | None
    replay_until: float | None
    forget_at: float


_OPERATION_FIELDS = tuple(OperationRow.__dataclass_fields__)
_KEY_FIELDS = tuple(KeyRow.__dataclass_fields__)

_FIND_OPERATION = Statement(
    select(*(operations.c[name] for name in _OPERATION_FIELDS)).where(
        operations.c.id == bindparam("wanted")
    )
)
_END_OPERATION = Statement(
    update(operations)
    .where(operations.c.id == bindparam("wanted"), operations.c.state == "pending")
    .values(state=bindparam("now"), ended_at=bindparam("at"), amount_nano=bindparam("amount"))
)
_THE_KEY = (
    (idempotency_keys.c.account_id == bindparam("of_account"))
    & (idempotency_keys.c.route == bindparam("of_route"))
    & (idempotency_keys.c.key == bindparam("wanted"))
)
_FIND_KEY = Statement(select(*(idempotency_keys.c[name] for name in _KEY_FIELDS)).where(_THE_KEY))
_DELETE_KEY = delete(idempotency_keys).where(_THE_KEY)
_END_KEY = Statement(
    update(idempotency_keys)
    .where(_THE_KEY, idempotency_keys.c.operation_id == bindparam("of_operation"))
    .values(state=bindparam("now"), body=bindparam("answer"), replay_until=bindparam("until"))
)
_INSERT_OPERATION = Statement(insert(operations), _OPERATION_FIELDS)
_INSERT_KEY = Statement(insert(idempotency_keys), _KEY_FIELDS)


def insert_operation(connection: Connection, *rows: OperationRow) -> None:
    """Write new operations."""
    values = [{name: getattr(row, name) for name in _OPERATION_FIELDS} for row in rows]
    _INSERT_OPERATION.change_each(connection, values)


def find_operation(connection: Connection, operation_id: str) -> OperationRow | None:
    """Return an operation."""
    row = _FIND_OPERATION.first(connection, {"wanted": operation_id})
    return None if row is None else _operation(row)


def pending_operations(connection: Connection) -> list[OperationRow]:
    """Return the operations of processes that have not ended, oldest first."""
    rows = connection.execute(
        select(*(operations.c[name] for name in _OPERATION_FIELDS))
        .where(operations.c.state == "pending", operations.c.instance.is_not(None))
        .order_by(operations.c.accepted_at)
    )
    return [_operation(row) for row in rows]


def ending(operation_id: str, *, state: str, amount_nano: int, at: float) -> Call:
    """Return the statement that ends an operation, and writes no row unless it is pending."""
    return _END_OPERATION, {
        "wanted": operation_id,
        "now": state,
        "amount": amount_nano,
        "at": at,
    }


def end_operation(
    connection: Connection, operation_id: str, *, state: str, amount_nano: int, at: float
) -> bool:
    """End an operation that is pending; return whether it was."""
    statement, values = ending(operation_id, state=state, amount_nano=amount_nano, at=at)
    return statement.change(connection, values) == 1


def insert_key(connection: Connection, *rows: KeyRow) -> None:
    """Write keys that are free so far."""
    values = [{name: getattr(row, name) for name in _KEY_FIELDS} for row in rows]
    _INSERT_KEY.change_each(connection, values)


def finding_key(account_id: str, route: str, key: str) -> Call:
    """Return the statement that finds a key in use; ``key_of`` reads its row."""
    return _FIND_KEY, {"of_account": account_id, "of_route": route, "wanted": key}


def key_of(row: Sequence[Any] | None) -> KeyRow | None:
    """Return a key as its row has it."""
    if row is None:
        return None
    fields = dict(zip(_KEY_FIELDS, row, strict=True))
    if fields["body"] is not None:
        fields["body"] = bytes(fields["body"])
    return KeyRow(**fields)


def find_key(connection: Connection, account_id: str, route: str, key: str) -> KeyRow | None:
    """Return a key in use."""
    statement, values = finding_key(account_id, route, key)
    return key_of(statement.first(connection, values))


def delete_key(connection: Connection, account_id: str, route: str, key: str) -> None:
    """Free a key."""
    connection.execute(_DELETE_KEY, {"of_account": account_id, "of_route": route, "wanted": key})


def key_ending(
    operation: OperationRow, *, state: str, body: bytes, replay_until: float | None
) -> Values:
    """Return how a keyed operation ended, with its answer or its error, for ``end_keys``."""
    return {
        "of_account": operation.account_id,
        "of_route": operation.route,
        "wanted": operation.idempotency_key,
        "of_operation": operation.id,
        "now": state,
        "answer": body,
        "until": replay_until,
    }


def end_keys(connection: Connection, endings: Sequence[Values]) -> None:
    """Write how keyed operations ended."""
    _END_KEY.change_each(connection, endings)


def drop_answers(connection: Connection, now: float, *, limit: int) -> int:
    """Drop the answers past their time, at most ``limit``; the keys stay. Return how many."""
    # A key whose answer is gone leaves the index: each sweep would read it again for a month.
    gone = update(idempotency_keys).where(_THE_KEY).values(body=None, replay_until=None)
    rows = connection.execute(_some_keys(limit).where(idempotency_keys.c.replay_until <= now)).all()
    for row in rows:
        connection.execute(gone, _naming(row))
    return len(rows)


def forget_keys(connection: Connection, now: float, *, limit: int) -> int:
    """Forget the keys past their time, at most ``limit``, but none pending. Return how many."""
    past = _some_keys(limit).where(
        idempotency_keys.c.forget_at <= now, idempotency_keys.c.state != "pending"
    )
    rows = connection.execute(past).all()
    for row in rows:
        connection.execute(_DELETE_KEY, _naming(row))
    return len(rows)


def delete_free_operations(connection: Connection, before: float, *, limit: int) -> int:
    """Remove ended operations that touched no money, older than a time. Return how many."""
    has_entries = select(ledger_entries.c.id).where(
        ledger_entries.c.operation_id == operations.c.id
    )
    old = (
        select(operations.c.id)
        .where(
            operations.c.state.in_(("succeeded", "failed", "released")),
            operations.c.accepted_at < before,
            operations.c.reserved_nano == 0,
            ~has_entries.exists(),
        )
        .limit(limit)
    )
    return connection.execute(delete(operations).where(operations.c.id.in_(old))).rowcount


def _some_keys(limit: int) -> Select[Any]:
    key = idempotency_keys.c
    return select(key.account_id, key.route, key.key).limit(limit)


def _naming(row: Row[Any]) -> dict[str, str]:
    return {"of_account": row.account_id, "of_route": row.route, "wanted": row.key}


def _operation(row: Sequence[Any]) -> OperationRow:
    return OperationRow(**dict(zip(_OPERATION_FIELDS, row, strict=True)))
