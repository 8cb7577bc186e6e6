"""A PostgreSQL state whose other host is frozen, or whose database says nothing: no call waits for ever."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from sqlalchemy import Connection, func, insert, select

from steelyard.errors import StorageUnavailableError
from steelyard.storage import bounded, open_state
from steelyard.storage.tables import accounts
from support.servers.forwarder import forwarded

#: Seconds that a statement may take here; all bounds are parts of them.
TIMEOUT_S = 2.0

#: Writes twice: in the first turn it stops where it is told to, as a host that freezes.
HOST = """
    import sys
    from sqlalchemy import insert, select
    from steelyard.errors import StorageUnavailableError
    from steelyard.storage import open_state
    from steelyard.storage.tables import accounts

    def add(connection):
        connection.execute(insert(accounts), {"id": "lost", "name": "lost", "created_at": 1.0})
        print("in its turn", flush=True)
        sys.stdin.readline()
        connection.execute(select(accounts.c.id)).all()

    state = open_state(sys.argv[1], timeout_s=2.0)
    for _ in range(2):
        try:
            state.write_now(add)
        except StorageUnavailableError as error:
            print(error.code, flush=True)
        else:
            print("written", flush=True)
    state.close()
"""


def add(name: str):
    def work(connection: Connection) -> None:
        connection.execute(insert(accounts), {"id": name, "name": name, "created_at": 1.0})

    return work


def names(state) -> set[str]:
    listed = select(accounts.c.name).where(accounts.c.id != "local")
    return set(state.read_now(lambda connection: connection.scalars(listed).all()))


def test_a_host_that_is_frozen_in_its_turn_loses_it(postgres):
    """SIGSTOP leaves its connection open, as a machine does that hangs."""
    url = postgres.new_state()
    state = open_state(url, timeout_s=TIMEOUT_S)
    command = [sys.executable, "-c", textwrap.dedent(HOST), url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout.readline() == "in its turn\n"
        host.send_signal(signal.SIGSTOP)
        state.write_now(add("other"))
        assert names(state) == {"other"}
        host.send_signal(signal.SIGCONT)
        # It was away for longer than a lost transaction is made again for.
        state.write_now(wait_on_the_database)
        host.stdin.write("\n")
        host.stdin.flush()
        assert host.stdout.readline() == "storage_unavailable\n"
        assert names(state) == {"other"}
        assert host.stdout.readline() == "in its turn\n"
        host.stdin.write("\n")
        host.stdin.flush()
        assert host.stdout.readline() == "written\n"
    assert names(state) == {"other", "lost"}
    state.close()


def test_a_host_that_stops_within_a_statement_loses_its_turn(postgres):
    """PostgreSQL looks at transactions that are idle, and not at one that waits for the rest of a message."""
    url = postgres.new_state()
    state = open_state(url, timeout_s=TIMEOUT_S)
    in_turn, is_ended = threading.Event(), threading.Event()

    def stop_within(connection: Connection) -> None:
        driver = connection.connection.dbapi_connection
        driver.execute("SELECT 1")
        # It is no more idle for PostgreSQL, which waits for what is to be done.
        driver.pgconn.enter_pipeline_mode()
        driver.pgconn.send_flush_request()
        driver.pgconn.flush()
        in_turn.set()
        is_ended.wait(60)
        connection.execute(select(accounts.c.id)).all()

    other = open_state(url, timeout_s=TIMEOUT_S)
    lost = other.submit(stop_within)
    assert in_turn.wait(60)
    state.write_now(add("other"))
    is_ended.set()
    with pytest.raises(StorageUnavailableError):
        lost.result(60)
    for each in (other, state):
        each.close()


def wait_on_the_database(connection: Connection) -> None:
    connection.execute(select(func.pg_sleep(TIMEOUT_S / 2))).close()


@pytest.fixture
def through(postgres, monkeypatch):
    """A state that is opened through a forwarder, whose connections count as idle at once."""
    monkeypatch.setattr(bounded, "_IDLE_S", 0.0)
    monkeypatch.setattr(bounded, "_PING_S", 0.2)
    monkeypatch.setattr(bounded, "_CONNECT_S", 2)
    with forwarded(postgres.new_state()) as (forwarder, url):
        state = open_state(url, timeout_s=TIMEOUT_S)
        try:
            yield forwarder, state
        finally:
            state.close()


def test_a_database_that_says_nothing_is_unavailable_until_it_answers(through):
    forwarder, state = through
    state.write_now(add("before"))
    assert names(state) == {"before"}
    forwarder.fall_silent()
    for ask in (
        lambda: state.write_now(add("lost")),
        lambda: asyncio.run(state.write(add("lost"))),
        lambda: names(state),
        lambda: asyncio.run(state.read(lambda connection: None)),
        lambda: asyncio.run(state.look_up(lambda connection: None)),
    ):
        with pytest.raises(StorageUnavailableError):
            ask()
    forwarder.speak()
    state.write_now(add("after"))
    assert names(state) == {"before", "after"}


def test_a_statement_that_is_not_answered_ends(through):
    """The connection worked a moment ago, so it was not tried before."""
    forwarder, state = through

    def fall_silent(connection: Connection) -> None:
        forwarder.fall_silent()
        connection.execute(select(accounts.c.id)).all()

    with pytest.raises(StorageUnavailableError):
        state.write_now(fall_silent)
    forwarder.speak()
    with pytest.raises(StorageUnavailableError):
        state.read_now(fall_silent)
    forwarder.speak()
    state.write_now(add("after"))
    assert names(state) == {"after"}


def test_connections_that_are_dead_are_left_for_new_ones(through):
    forwarder, state = through

    async def read_at_once() -> None:
        await asyncio.gather(*(state.read(wait_a_little) for _ in range(8)))

    state.write_now(add("before"))
    asyncio.run(read_at_once())
    forwarder.silence_old()
    asyncio.run(read_at_once())
    state.write_now(add("after"))
    assert names(state) == {"before", "after"}


def wait_a_little(connection: Connection) -> None:
    connection.execute(select(func.pg_sleep(0.05))).close()


def test_every_connection_has_its_bounds(through):
    _, state = through
    bounds = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")

    def read(connection: Connection) -> list[str]:
        shown = [func.current_setting(name) for name in bounds]
        return list(connection.execute(select(*shown)).one())

    assert state.write_now(read) == ["2s", "1s", "500ms"]
    assert state.read_now(read) == ["2s", "2s", "1min"]
