"""The rows of an account as JSON Lines, table by table, where no other file of its archive has them.

The tables are found by their keys, as those that are cleared when an account is removed: one that is
added is exported unless it is named here.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, select, tuple_

from steelyard.people.removal import owned_rows
from steelyard.storage import State

#: Tables that other files of the archive show.
IN_OTHER_FILES = frozenset(
    {
        "accounts",
        "api_keys",
        "audit_entries",
        "balances",
        "dataset_versions",
        "datasets",
        "decisions",
        "feedback",
        "ledger_entries",
        "memberships",
        "purchases",
        "tuned_models",
    }
)
#: Tables of the server's own working, of derived numbers, and of other accounts' actions.
OF_THE_SERVER = frozenset(
    {
        "account_lines",
        "alarm_feedback",
        "alarm_watches",
        "bulk_partitions",
        "decision_archivings",
        "decision_files",
        "evaluation_partitions",
        "evaluation_parts",
        "idempotency_keys",
        "key_months",
        "labeling_parts",
        "operations",
        "payment_methods",
        "referrals",
    }
)
#: Columns with which a reader could sign in the account's name, or that name a working process.
_LEFT_OUT = frozenset({"account_id", "claimed_until", "old_secret", "runner", "secret"})
#: Rows that are read at a time.
_AT_ONCE = 100


def export_tables(state: State, account_id: str) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield a file of each table in which an account has rows, with its name."""
    for table, is_owned in owned_rows(account_id).items():
        if table.name in IN_OTHER_FILES | OF_THE_SERVER:
            continue
        pieces = _rows(state, table, is_owned)
        first = next(pieces, None)
        if first is not None:
            yield f"tables/{table.name}.jsonl", _joined(first, pieces)


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _rows(state: State, table: Table, is_owned: ColumnElement[bool]) -> Iterator[bytes]:
    """Yield the rows by their keys, so that each piece goes on behind the one before."""
    keys = list(table.primary_key)
    first_page = select(table).where(is_owned).order_by(*keys).limit(_AT_ONCE)
    page = first_page
    while True:
        rows = state.read_now(functools.partial(_read, page=page))
        if not rows:
            return
        yield b"".join(_line(row) for row in rows)
        page = first_page.where(tuple_(*keys) > tuple_(*(rows[-1][key.name] for key in keys)))


def _read(connection: Connection, page: Any) -> list[Mapping[str, Any]]:
    return [dict(row) for row in connection.execute(page).mappings()]


def _line(row: Mapping[str, Any]) -> bytes:
    fields = {name: _shown(value) for name, value in row.items() if name not in _LEFT_OUT}
    return msgspec.json.encode(fields) + b"\n"


def _shown(value: Any) -> Any:
    """Return bytes as the JSON that they are, and others in base64."""
    if not isinstance(value, bytes):
        return value
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return base64.b64encode(value).decode("ascii")
    return msgspec.Raw(value)
