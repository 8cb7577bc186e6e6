"""The tables of a new state, recorded once in a process of tests and replayed in its other databases.

Most tests open a new state, and composing every table anew takes a share of all their CPU time.
Making them is tested in ``tests/storage/test_migrate.py``, which does not replay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event

from steelyard.storage import migrate
from steelyard.storage.tables import accounts

_Statement = tuple[str, Any, bool]


class RecordedTables:
    """Makes the tables of a state by the statements that made the first of its kind."""

    def __init__(self, create: Callable[[Connection], None]) -> None:
        self.create = create
        self._recorded: dict[str, list[_Statement]] = {}

    def __call__(self, connection: Connection) -> None:
        """Make the tables in the transaction of a connection."""
        if connection.dialect.name not in self._recorded:
            self._recorded[connection.dialect.name] = self._record(connection)
        else:
            cursor = connection.connection.cursor()
            for statement, parameters, is_many in self._recorded[connection.dialect.name]:
                (cursor.executemany if is_many else cursor.execute)(statement, parameters)
            cursor.close()
            # When a state was made tells it from another.
            connection.execute(accounts.update().values(created_at=time.time()))

    def _record(self, connection: Connection) -> list[_Statement]:
        statements: list[_Statement] = []

        def keep(_c: Any, _cursor: Any, sql: str, given: Any, _context: Any, many: bool) -> None:
            statements.append((sql, given, many))

        event.listen(connection, "before_cursor_execute", keep)
        try:
            self.create(connection)
        finally:
            event.remove(connection, "before_cursor_execute", keep)
        return statements


@contextmanager
def tables_recorded() -> Iterator[None]:
    """Replay the making of tables in this process until the end of the block."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(migrate, "create_tables", RecordedTables(migrate.create_tables))
        yield


@contextmanager
def tables_made() -> Iterator[None]:
    """Make tables as the product does until the end of the block."""
    with pytest.MonkeyPatch.context() as patched:
        replayed = migrate.create_tables
        if isinstance(replayed, RecordedTables):
            patched.setattr(migrate, "create_tables", replayed.create)
        yield
