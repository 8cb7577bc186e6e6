"""Connections to PostgreSQL that end: none waits for ever, and none has others wait for ever.

A host may freeze while it has the writer's turn, the network may drop packets, and a proxy in
between may take it and say nothing. So the database ends a transaction in which nothing happens, a
statement that takes too long and a connection whose client is gone, and a client gives a connection
up that does not answer.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import InvalidatePoolError

#: Seconds that a statement may take, and that a write waits for its turn.
TIMEOUT_S = 8.0
#: Seconds beyond that for the database to say so itself.
_SLACK_S = 0.5
#: Of that time, how long a transaction with the writer's turn may do nothing.
_TURN = 0.25
#: Seconds for which a transaction that reads may do nothing: others do not wait for it.
_READ_IDLE_S = 60.0
#: Seconds of silence after which a connection is tried before it is used, and how long that may take.
_IDLE_S, _PING_S = 2.0, 2.0
_CONNECT_S = 4


def connect_arguments(url: URL, name: str, timeout_s: float) -> dict[str, str | int]:
    """Return the connection arguments that the URL does not have."""
    arguments: dict[str, str | int] = {
        "application_name": name,
        "connect_timeout": _CONNECT_S,
        "keepalives": 1,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": int(timeout_s * 500),
    }
    return {name: value for name, value in arguments.items() if name not in url.query}


def bound(engine: Engine, timeout_s: float, *, has_turn: bool) -> None:
    """Bound every connection that an engine makes from now on."""
    idle_s = turn_s(timeout_s) if has_turn else max(_READ_IDLE_S, timeout_s)
    limits = {
        "statement_timeout": int(timeout_s * 1000),
        "lock_timeout": int((idle_s + _SLACK_S if has_turn else timeout_s) * 1000),
        "idle_in_transaction_session_timeout": int(idle_s * 1000),
        "tcp_keepalives_idle": 5,
        "tcp_keepalives_interval": 2,
        "tcp_keepalives_count": 3,
        "tcp_user_timeout": int(timeout_s * 500),
    }

    def connect(_: object, __: object, arguments: list[Any], options: Mapping[str, Any]) -> Any:
        connection = _connection_class().connect(*arguments, **options)
        connection.wait_s = timeout_s + _SLACK_S
        try:
            _limit(connection, limits)
        except BaseException:
            connection.close()
            raise
        return connection

    def check_out(connection: Any, *_: object) -> None:
        try:
            with _briefly(connection) as is_idle:
                if is_idle:
                    engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            # Those beside it are as old: each would cost its reader the same time.
            raise InvalidatePoolError from error

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "checkout", check_out)


def turn_s(timeout_s: float) -> float:
    """Return how long a process may do nothing in its turn to write."""
    return timeout_s * _TURN


def try_connection(connection: Connection) -> None:
    """Fail soon where a connection that was idle is dead: the wait for a turn may be long."""
    with _briefly(connection.connection.dbapi_connection) as is_idle:
        if is_idle:
            connection.exec_driver_sql("SELECT 1")


def _limit(connection: Any, limits: Mapping[str, int]) -> None:
    calls = ", ".join("set_config(%s, %s, false)" for _ in limits)
    values = [text for name, limit in limits.items() for text in (name, str(limit))]
    connection.autocommit = True
    connection.execute(f"SELECT {calls}", values)
    connection.autocommit = False


@contextmanager
def _briefly(connection: Any) -> Iterator[bool]:
    """Yield whether a connection was idle for long, which then has to answer soon."""
    wait_s = getattr(connection, "wait_s", None)
    if wait_s is None or time.monotonic() - connection.heard_at < _IDLE_S:
        yield False
        return
    connection.wait_s = min(wait_s, _PING_S)
    try:
        yield True
    finally:
        connection.wait_s = wait_s


@functools.cache
def _connection_class() -> Any:
    """Return the class of connections; its package is there where a database is."""
    import psycopg  # noqa: PLC0415

    class BoundedConnection(psycopg.Connection[Any]):
        """A connection that is given up once the database says nothing for some seconds."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.wait_s = _CONNECT_S + 0.0
            self.heard_at = time.monotonic()

        def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
            answer = super().wait(self._until_silent(gen), *arguments, **options)
            self.heard_at = time.monotonic()
            return answer

        def _until_silent(self, waits: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            heard_at = time.monotonic()
            try:
                needed = next(waits)
                while True:
                    # What is ready, and nothing now and then, so that a wait can be ended.
                    ready = yield needed
                    if ready:
                        heard_at = time.monotonic()
                    elif time.monotonic() - heard_at > self.wait_s:
                        self.pgconn.finish()
                        raise psycopg.OperationalError(
                            f"The database said nothing for {self.wait_s:g} s."
                        )
                    needed = waits.send(ready)
            except StopIteration as end:
                return end.value

    return BoundedConnection
