"""Laws that a state keeps whatever happened to the processes that wrote it, read from the file."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, text


@dataclass(frozen=True)
class Books:
    """A database's records of work and money."""

    operations: dict[str, dict[str, Any]]
    entries: dict[str, dict[str, int]]  # operation to book to the sum of its entries
    n_entries: dict[tuple[str, str], int]  # operation and book to the number of its entries
    keys: dict[tuple[str, str, str], dict[str, Any]]  # account, route and idempotency key
    decisions: set[str]
    feedback: dict[str, dict[str, Any]]

    def by_key(self) -> dict[str, list[dict[str, Any]]]:
        """Return the operations of every idempotency key."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.operations.values():
            if row["idempotency_key"] is not None:
                found[row["idempotency_key"]].append(row)
        return found

    def count(self, state: str) -> int:
        return sum(row["state"] == state for row in self.operations.values())


_TABLES = (
    "operations",
    "ledger_entries",
    "balances",
    "key_months",
    "idempotency_keys",
    "decisions",
    "feedback",
)
_Rows = dict[str, list[dict[str, Any]]]


def audit(path: Path) -> Books:
    """Check the laws of a state that no process is writing, and return its books."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return _audit_rows(
            {
                table: [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
                for table in _TABLES
            }
        )


def audit_server(url: str) -> Books:
    """Do as ``audit`` does for a state in PostgreSQL."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        return _audit_rows(
            {
                table: [
                    dict(row)
                    for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()
                ]
                for table in _TABLES
            }
        )


def _audit_rows(rows: _Rows) -> Books:
    entries: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    n_entries: dict[tuple[str, str], int] = defaultdict(int)
    books: dict[tuple[str, str], int] = defaultdict(int)
    for entry in rows["ledger_entries"]:
        amount = entry["amount_nano"]
        entries[entry["operation_id"]][entry["book"]] += amount
        n_entries[entry["operation_id"], entry["book"]] += 1
        books[entry["account_id"], entry["book"]] += amount
    feedback: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in rows["feedback"]:
        feedback[row["decision_id"]][row["name"]] = json.loads(row["outcome"])
    found = Books(
        operations={row["id"]: row for row in rows["operations"]},
        entries=entries,
        n_entries=n_entries,
        keys={
            (row["account_id"], row["route"], row["key"]): row for row in rows["idempotency_keys"]
        },
        decisions={row["id"] for row in rows["decisions"]},
        feedback=feedback,
    )
    balances = {(row["account_id"], row["book"]): row["amount_nano"] for row in rows["balances"]}
    assert balances == {place: amount for place, amount in books.items() if place in balances}
    assert not {place for place, amount in books.items() if amount} - balances.keys()
    for operation in found.operations.values():
        _check_operation(operation, found)
    _check_months(rows["key_months"], found)
    _check_keys(found)
    return found


def _check_operation(operation: dict[str, Any], found: Books) -> None:
    identity, state = operation["id"], operation["state"]
    sums = found.entries[identity]
    assert sum(sums.values()) == 0, operation
    if state == "credit":
        return
    is_pending, is_charged = state == "pending", state == "succeeded"
    assert sums["held"] == (operation["reserved_nano"] if is_pending else 0), operation
    assert sums["revenue"] == (operation["amount_nano"] if is_charged else 0), operation
    assert found.n_entries[identity, "revenue"] == (1 if sums["revenue"] else 0), operation
    assert is_charged or operation["amount_nano"] == 0, operation
    assert operation["amount_nano"] <= operation["reserved_nano"], operation
    assert (operation["ended_at"] is None) == is_pending, operation


def _check_months(months: list[dict[str, Any]], found: Books) -> None:
    for column, field, state in (
        ("spent_nano", "amount_nano", "succeeded"),
        ("held_nano", "reserved_nano", "pending"),
    ):
        counted: dict[str, int] = defaultdict(int)
        for month in months:
            counted[month["key_id"]] += month[column]
        expected: dict[str, int] = defaultdict(int)
        for operation in found.operations.values():
            if operation["key_id"] is not None and operation["state"] == state:
                expected[operation["key_id"]] += operation[field]
        for key_id in counted.keys() | expected.keys():
            assert counted[key_id] == expected[key_id], (key_id, column)


def _check_keys(found: Books) -> None:
    for (_, _, key), row in found.keys.items():
        if row["operation_id"] is None:
            continue  # of a write that is no operation
        assert found.operations[row["operation_id"]]["state"] == row["state"], row
        assert (row["body"] is None) == (row["state"] == "pending"), row
        assert found.operations[row["operation_id"]]["idempotency_key"] == key
    succeeded = Counter(
        (row["account_id"], row["route"], row["idempotency_key"])
        for row in found.operations.values()
        if row["idempotency_key"] is not None and row["state"] == "succeeded"
    )
    assert [key for key, n in succeeded.items() if n > 1] == []
