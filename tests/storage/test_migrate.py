"""Migrations: from nothing, once, by one process of several, to what the tables say."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Inspector, create_engine, inspect, select, text
from sqlalchemy.schema import CreateSchema

from steelyard.errors import StorageUnavailableError
from steelyard.storage import State, open_state
from steelyard.storage.migrate import HEAD, MIGRATIONS, revision_of
from steelyard.storage.tables import accounts, metadata
from support.postgres_server import PostgresServer
from support.recorded_migrations import migrations_run
from support.repository import PACKAGE


@pytest.fixture(scope="module", autouse=True)
def _migrations_run() -> Iterator[None]:
    with migrations_run():
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
    """Return every table with what ``compare_metadata`` compares, and its checks and references."""
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


def test_the_migrations_make_what_the_tables_of_every_room_say(state: State):
    for path in PACKAGE.glob("*/tables.py"):
        importlib.import_module(f"steelyard.{path.parent.name}.tables")

    def compare(connection: Connection) -> None:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
        assert differences == []
        made = schema_of(inspect(connection))
        if connection.dialect.name == "sqlite":
            with create_engine("sqlite://").connect() as other:
                metadata.create_all(other)
                assert made == schema_of(inspect(other))
            return
        connection.execute(CreateSchema("said"))
        metadata.create_all(connection.execution_options(schema_translate_map={None: "said"}))
        assert made == schema_of(inspect(connection), "said")

    assert state.read_now(revision_of) == HEAD
    state.write_now(compare)


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


def test_a_newer_state_is_refused_and_left_alone(state: State, state_url: str):
    newer = text("UPDATE alembic_version SET version_num = '9999'")
    state.write_now(lambda connection: connection.execute(newer).close())
    state.close()
    for _ in range(2):
        with pytest.raises(StorageUnavailableError, match="newer version"):
            open_state(state_url)


def test_a_migration_that_fails_leaves_nothing(state_url: str, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("made to fail")

    with monkeypatch.context() as patched:
        patched.setattr("alembic.op.bulk_insert", fail)
        with pytest.raises(RuntimeError, match="made to fail"):
            open_state(state_url)
    state = open_state(state_url)
    assert state.read_now(revision_of) == HEAD
    state.close()


def test_entries_of_the_older_books_are_kept(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'state.sqlite'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
        connection.execute(
            text(
                "INSERT INTO operations (id, account_id, route, model, state, accepted_at, "
                "reserved_nano, amount_nano) VALUES ('op_1', 'local', 'credit', '', 'credit', 1, 0, 7)"
            )
        )
        for table, columns, rest in (
            ("ledger_entries", "operation_id, account_id, book, amount_nano, created_at", ", 1"),
            ("balances", "account_id, book, amount_nano", ""),
        ):
            start = "'op_1', 'local'" if rest else "'local'"
            connection.execute(
                text(
                    f"INSERT INTO {table} ({columns}) VALUES ({start}, 'wallet', 7{rest}), "
                    f"({start}, 'funding', -7{rest})"
                )
            )
    engine.dispose()
    state = open_state(url)
    try:
        for table in ("ledger_entries", "balances"):
            books = state.read_now(
                lambda connection, table=table: connection.execute(
                    text(f"SELECT book, amount_nano FROM {table}")
                ).all()
            )
            assert dict(tuple(row) for row in books) == {"paid": 7, "funding": -7}
    finally:
        state.close()
