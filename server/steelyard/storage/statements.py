"""Statements that every paid request runs, compiled once.

SQLAlchemy spends 15 to 30 microseconds around a statement that SQLite runs in two or three. On SQLite
these are handed to the driver as compiled; on PostgreSQL, where a round trip costs more than
either, they run as any other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement, Executable
from sqlalchemy.sql.compiler import SQLCompiler

Values: TypeAlias = Mapping[str, Any]


class Statement:
    """A statement for a transaction that has begun, or alone; safe to use from several threads.

    Parameters
    ----------
    clause : Executable
        Its parameters are named; none is a list.
    columns : iterable of str
        The columns that an INSERT writes.
    """

    def __init__(self, clause: Executable, columns: Iterable[str] = ()) -> None:
        self._clause = clause
        self._columns = tuple(columns)
        self._compiled: _Compiled | None = None

    def first(self, connection: Connection, values: Values) -> Sequence[Any] | None:
        """Return the first row, or ``None``."""
        compiled = self._for(connection)
        if compiled is None:
            return connection.execute(self._clause, values).first()
        # All of them: a statement that is not at its end keeps what it reads from being cleared away.
        rows = compiled.run(connection, values).fetchall()
        return rows[0] if rows else None

    def change(self, connection: Connection, values: Values) -> int:
        """Write; return how many rows were."""
        compiled = self._for(connection)
        if compiled is None:
            return connection.execute(self._clause, values).rowcount
        return compiled.run(connection, values).rowcount

    def change_each(self, connection: Connection, values: Sequence[Values]) -> None:
        """Write once for each of some values, at least one."""
        compiled = self._for(connection)
        if compiled is None:
            connection.execute(self._clause, values)
        else:
            compiled.run_each(connection, values)

    def _for(self, connection: Connection) -> _Compiled | None:
        if connection.dialect.name != "sqlite":
            return None
        if self._compiled is None:
            self._compiled = _Compiled(connection, self._clause, self._columns)
        return self._compiled


class _Compiled:
    """A statement as SQLite's driver takes it."""

    def __init__(self, connection: Connection, clause: Executable, columns: Sequence[str]) -> None:
        assert isinstance(clause, ClauseElement)  # noqa: S101  as all that are run
        compiled = clause.compile(dialect=connection.dialect, column_keys=list(columns) or None)
        assert isinstance(compiled, SQLCompiler)  # noqa: S101  of a statement
        self._sql = str(compiled)
        given = {bind.key for bind in compiled.binds.values() if bind.required}
        given.update(columns)
        #: The values that the statement itself has, and how each place is filled, in order.
        self._own = {name: param for name, param in compiled.params.items() if name not in given}
        processors: Mapping[str, Any] = compiled._bind_processors
        self._places: list[tuple[str, Callable[[Any], Any] | None]] = [
            (name, processors.get(name)) for name in compiled.positiontup or ()
        ]

    def run(self, connection: Connection, values: Values) -> sqlite3.Cursor:
        try:
            return _driver(connection).execute(self._sql, self._row(values))
        except sqlite3.Error as error:
            raise self._database_error(error, connection) from error

    def run_each(self, connection: Connection, values: Sequence[Values]) -> None:
        try:
            _driver(connection).executemany(self._sql, map(self._row, values))
        except sqlite3.Error as error:
            raise self._database_error(error, connection) from error

    def _row(self, values: Values) -> list[Any]:
        if self._own:
            values = {**self._own, **values}
        return [
            values[name] if process is None else process(values[name])
            for name, process in self._places
        ]

    def _database_error(self, error: sqlite3.Error, connection: Connection) -> BaseException:
        """Return the error that SQLAlchemy would raise, without the parameters that callers sent."""
        return DBAPIError.instance(
            self._sql,
            None,
            error,
            sqlite3.Error,
            hide_parameters=True,
            dialect=connection.dialect,
        )


def _driver(connection: Connection) -> sqlite3.Connection:
    driver: sqlite3.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]
    return driver
