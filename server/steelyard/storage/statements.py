"""Statements that every paid request runs, compiled once.

SQLAlchemy spends 15 to 30 microseconds around a statement that SQLite runs in two or three: there these are
handed to the driver as compiled. On PostgreSQL a trip to the server costs more than either, so that
those of many requests are sent in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.sql import ClauseElement, Executable
from sqlalchemy.sql.compiler import SQLCompiler

from steelyard.storage.failures import database_error

Values: TypeAlias = Mapping[str, Any]
#: A statement to be run with some values.
Call: TypeAlias = "tuple[Statement, Values]"


class StatementResult(NamedTuple):
    """The first row that a statement found, and how many it found or wrote."""

    row: Sequence[Any] | None
    n_rows: int


@contextmanager
def single_trip(connection: Connection) -> Iterator[None]:
    """Send statements run inside by ``change_each`` to PostgreSQL without waiting; wait for all at the end."""
    if connection.dialect.name == "sqlite":
        yield
        return
    try:
        with _driver(connection).pipeline():
            yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise database_error(error, connection) from error


def run_all(connection: Connection, calls: Iterable[Call]) -> list[StatementResult]:
    """Run statements in their order, on PostgreSQL in one trip; return the rows or counts of each."""
    with single_trip(connection):
        cursors = [statement.send(connection, values) for statement, values in calls]
    # All rows: a statement that is not at its end keeps its rows from being cleared away.
    rows_of_each = [cursor.fetchall() if cursor.description else [] for cursor in cursors]
    return [
        StatementResult(rows[0] if rows else None, cursor.rowcount)
        for cursor, rows in zip(cursors, rows_of_each, strict=True)
    ]


class Statement:
    """A statement for a transaction that has begun, or alone; safe to use from several threads.

    Its parameters are named, and none is a list; ``columns`` are those that an INSERT writes.
    """

    def __init__(self, clause: Executable, columns: Iterable[str] = ()) -> None:
        self._clause = clause
        self._columns = tuple(columns)
        self._compiled: dict[str, _Compiled] = {}

    def first(self, connection: Connection, values: Values) -> Sequence[Any] | None:
        """Return the first row, or ``None``."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._clause, values).first()
        rows = self.send(connection, values).fetchall()
        return rows[0] if rows else None

    def change(self, connection: Connection, values: Values) -> int:
        """Write; return how many rows were."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._clause, values).rowcount
        n_rows: int = self.send(connection, values).rowcount
        return n_rows

    def change_each(self, connection: Connection, values: Sequence[Values]) -> None:
        """Write once for each of some values."""
        if values:
            self._for(connection).run_each(connection, values)

    def send(self, connection: Connection, values: Values) -> Any:
        """Return the driver's cursor of it, which has nothing before the end of ``single_trip``."""
        return self._for(connection).run(connection, values)

    def _for(self, connection: Connection) -> _Compiled:
        name = connection.dialect.name
        if name not in self._compiled:
            self._compiled[name] = _Compiled(connection, self._clause, self._columns)
        return self._compiled[name]


class _Compiled:
    """A statement as a driver takes it."""

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
        self._is_positional = compiled.positional
        self._places: list[tuple[str, Callable[[Any], Any] | None]] = [
            (name, processors.get(name)) for name in compiled.positiontup or compiled.params
        ]

    def run(self, connection: Connection, values: Values) -> Any:
        try:
            return _driver(connection).execute(self._sql, self._row(values))
        except connection.dialect.loaded_dbapi.Error as error:
            raise database_error(error, connection, self._sql) from error

    def run_each(self, connection: Connection, values: Sequence[Values]) -> None:
        rows = [self._row(row) for row in values]
        try:
            _driver(connection).cursor().executemany(self._sql, rows)
        except connection.dialect.loaded_dbapi.Error as error:
            raise database_error(error, connection, self._sql) from error

    def _row(self, values: Values) -> Sequence[Any] | Mapping[str, Any]:
        if self._own:
            values = {**self._own, **values}
        row = [
            values[name] if process is None else process(values[name])
            for name, process in self._places
        ]
        if self._is_positional:
            return row
        return {name: value for (name, _), value in zip(self._places, row, strict=True)}


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection
