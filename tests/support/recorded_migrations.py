"""Migrations recorded once in a process of tests, and replayed on its other new databases.

Most tests open a new state, and composing every table anew took a tenth of all their CPU time.
The migrations themselves are tested in ``tests/storage/test_migrate.py``, which does not replay.
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


class RecordedUpgrade:
    """Upgrades a database without tables by the statements that made the first of its kind."""

    def __init__(self, upgrade: Callable[[Connection], None]) -> None:
        self.upgrade = upgrade
        self._recorded: dict[str, list[_Statement]] = {}

    def __call__(self, connection: Connection) -> None:
        """Bring a database to the newest revision in its transaction."""
        if migrate.revision_of(connection) is not None:
            self.upgrade(connection)
        elif connection.dialect.name not in self._recorded:
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
            self.upgrade(connection)
        finally:
            event.remove(connection, "before_cursor_execute", keep)
        return statements


@contextmanager
def migrations_recorded() -> Iterator[None]:
    """Replay migrations in this process until the end of the block."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(migrate, "_upgrade", RecordedUpgrade(migrate._upgrade))
        yield


@contextmanager
def migrations_run() -> Iterator[None]:
    """Run migrations as the product does until the end of the block."""
    with pytest.MonkeyPatch.context() as patched:
        replayed = migrate._upgrade
        if isinstance(replayed, RecordedUpgrade):
            patched.setattr(migrate, "_upgrade", replayed.upgrade)
        yield
