"""A new state has the tables of every room, made once by one process of several; an older is migrated."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Connection,
    Inspector,
    NullPool,
    create_engine,
    event,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.schema import CreateSchema

from steelyard.accounts.service import AccountService
from steelyard.errors import StorageUnavailableError
from steelyard.ledger.store import balances_of
from steelyard.storage import State, migrate, open_state
from steelyard.storage.migrate import HEAD, MIGRATIONS, OLDEST, revision_of
from steelyard.storage.tables import accounts, metadata
from support.servers.postgres_server import PostgresServer
from support.tree.next_version import NEXT, next_migrations
from support.tree.recorded_tables import tables_made
from support.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def _tables_made() -> Iterator[None]:
    with tables_made():
        yield


@pytest.fixture(params=["sqlite", "postgresql"])
def state_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.sqlite'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


def test_the_head_is_the_newest_revision():
    assert ScriptDirectory(MIGRATIONS).get_heads() == [HEAD]


def schema_of(inspector: Inspector, schema: str | None = None) -> dict[str, object]:
    """Return every table with the parts that ``compare_metadata`` compares, and its checks and references."""
    return {
        table: {
            "columns": [
                (one["name"], str(one["type"]), one["nullable"])
                for one in inspector.get_columns(table, schema)
            ],
            "key": inspector.get_pk_constraint(table, schema),
            "references": [
                (one["name"], one["referred_table"], one["constrained_columns"], one["options"])
                for one in inspector.get_foreign_keys(table, schema)
            ],
            "checks": inspector.get_check_constraints(table, schema),
            "unique": inspector.get_unique_constraints(table, schema),
            "indexes": inspector.get_indexes(table, schema),
        }
        for table in sorted(set(inspector.get_table_names(schema)) - {"alembic_version"})
    }


def check_tables(state: State) -> None:
    """Check that a state has the tables that every room says."""
    migrate.import_tables()

    def compare(connection: Connection) -> None:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
        assert differences == []
        made = schema_of(inspect(connection))
        if connection.dialect.name == "sqlite":
            with create_engine("sqlite://", poolclass=NullPool).connect() as other:
                metadata.create_all(other)
                assert made == schema_of(inspect(other))
            return
        connection.execute(CreateSchema("said"))
        metadata.create_all(connection.execution_options(schema_translate_map={None: "said"}))
        assert made == schema_of(inspect(connection), "said")

    assert state.read_now(revision_of) == HEAD
    state.write_now(compare)


@pytest.mark.slow
def test_a_new_state_has_the_tables_of_every_room(state: State):
    check_tables(state)


def test_a_state_of_the_first_release_is_migrated_to_the_same_tables(tmp_path: Path):
    path = tmp_path / "state.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("first_release.sql").read_text())
    state = open_state(f"sqlite:///{path}")
    check_tables(state)
    use(state, "customer")
    state.close()


def test_the_local_account_is_there_from_the_start(state: State):
    rows = state.read_now(lambda connection: connection.execute(select(accounts)).all())
    assert [(row.id, row.name) for row in rows] == [("local", "local")]


def test_opening_again_changes_nothing_and_loads_no_alembic(state: State, state_url: str):
    state.close()
    script = (
        "import sys\n"
        "from steelyard.storage import open_state\n"
        "open_state(sys.argv[1]).close()\n"
        "sys.exit('alembic' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, state_url], check=True, timeout=60)


@pytest.mark.slow
def test_several_processes_may_start_at_once(state_url: str):
    script = (
        "import sys\n"
        "from steelyard.storage import open_state\n"
        "sys.stdin.readline()\n"
        "state = open_state(sys.argv[1])\n"
        "state.write_now(lambda connection: None)\n"
        "state.close()\n"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, state_url],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    for child in children:
        _, errors = child.communicate(timeout=120)
        assert child.returncode == 0, errors
    state = open_state(state_url)
    rows = state.read_now(lambda connection: connection.execute(select(accounts.c.id)).all())
    assert len(rows) == 1
    state.close()


@pytest.fixture
def migrate_to_next(
    tmp_path: Path, state_url: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Open the state as the next version does, which names the oldest version that works on it."""
    folder = next_migrations(tmp_path)

    def run(oldest: str) -> None:
        with monkeypatch.context() as patched:
            for name, value in (("MIGRATIONS", folder), ("HEAD", NEXT), ("OLDEST", oldest)):
                patched.setattr(migrate, name, value)
            open_state(state_url).close()

    return run


def use(state: State, name: str) -> None:
    """Write and read accounts, keys and the ledger."""
    service = AccountService(state, accounts_enabled=True)
    account = service.create_account(name)
    service.add_credit(account.id, 7)
    key = service.create_key(account=account.id)
    caller = asyncio.run(service.authenticate(f"Bearer {key.secret}", "192.0.2.1"))
    assert caller.account_id == account.id
    assert state.read_now(partial(balances_of, account_id=account.id))["paid"] == 7


def test_this_version_goes_on_and_starts_on_a_state_that_the_next_one_migrated(
    state: State, state_url: str, migrate_to_next: Callable[[str], None]
):
    use(state, "before")
    migrate_to_next(HEAD)
    use(state, "while it was open")
    assert state.read_now(revision_of) == NEXT
    state.close()
    again = open_state(state_url)
    use(again, "started anew")
    again.close()
    migrate_to_next(HEAD)
    assert OLDEST <= HEAD


def test_a_newer_state_that_this_version_cannot_use_is_refused_and_left_alone(
    state: State, state_url: str, migrate_to_next: Callable[[str], None]
):
    state.close()
    migrate_to_next(NEXT)
    for _ in range(2):
        with pytest.raises(StorageUnavailableError, match="newer version"):
            open_state(state_url)
    migrate_to_next(NEXT)


def test_a_state_older_than_the_first_release_is_refused_with_the_way_to_migrate_it(
    state: State, state_url: str
):
    older = text("UPDATE alembic_version SET version_num = '0019'")
    state.write_now(lambda connection: connection.execute(older))
    state.close()
    with pytest.raises(
        StorageUnavailableError, match=r"older than the first release.*newest checkout"
    ):
        open_state(state_url)


def test_a_migration_gives_way_to_who_reads(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    url = postgres.new_database()
    open_state(url).close()
    engine = create_engine(url, poolclass=NullPool)
    folder = next_migrations(tmp_path)
    for name, value in (("MIGRATIONS", folder), ("HEAD", NEXT)):
        monkeypatch.setattr(migrate, name, value)
    waits = text("SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted")
    count = select(func.count()).select_from(accounts)
    with ThreadPoolExecutor(1) as pool:
        with engine.connect() as reading, engine.connect() as looking:
            reading.execute(count)  # the transaction stays open
            migrating = pool.submit(lambda: open_state(url).close())
            wait_until(lambda: looking.execute(waits).scalar())
            with engine.connect() as other:
                other.execute(text("SET statement_timeout = '30s'"))
                assert other.execute(count).scalar() == 1
            assert not migrating.done()
        migrating.result(60)
    with engine.connect() as connection:
        assert revision_of(connection) == NEXT


def test_tables_whose_making_fails_leave_nothing(state_url: str):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("made to fail")

    event.listen(migrate.metadata, "after_create", fail)
    try:
        with pytest.raises(RuntimeError, match="made to fail"):
            open_state(state_url)
    finally:
        event.remove(migrate.metadata, "after_create", fail)
    state = open_state(state_url)
    assert state.read_now(revision_of) == HEAD
    state.close()
