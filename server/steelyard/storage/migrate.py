"""Bringing a database to the newest revision of the tables.

A new one is made from the metadata; one of an older version is migrated. Whether either is needed is
found with a plain look-up, so that a start that has nothing to migrate does not load Alembic.
"""

from __future__ import annotations

import importlib
import threading
import time
from pathlib import Path

from sqlalchemy import Column, Connection, Engine, MetaData, Table, Text, inspect, select, text
from sqlalchemy.exc import OperationalError

from steelyard.errors import StorageUnavailableError
from steelyard.storage.locks import LOCKED, MIGRATE_KEY, WRITE_KEY
from steelyard.storage.tables import metadata, oldest_version

#: The revision of the first release: older databases cannot be migrated.
FIRST = "0024"
#: The newest revision: that of the last file in ``migrations/versions``.
HEAD = "0035"
#: The ``HEAD`` of the oldest version that works on the tables as the migrations leave them. A
#: migration that removes anything in use raises it to the ``HEAD`` of the next one.
OLDEST = FIRST

# Where Alembic keeps the revision.
_revision = Table("alembic_version", MetaData(), Column("version_num", Text, primary_key=True))

MIGRATIONS = Path(__file__).parent / "migrations"

#: How long a migration waits for a lock of PostgreSQL, during which later locks wait, and
#: for how long it tries again.
_LOCK_MS, _LOCKS_S, _PAUSE_S = 500, 60.0, 0.2
#: How long a migration may do nothing.
_IDLE_MS = 10_000

# What Alembic runs is kept in globals of its own: one migration at a time in a process.
_upgrading = threading.Lock()


def bring_to_head(engine: Engine) -> None:
    """Migrate in one transaction; safe when several processes do it at once.

    Processes that have the state open go on: on PostgreSQL the migration has a writer's turn, so that
    no writer holds a lock, and gives way to readers.
    """
    with engine.connect() as connection:
        is_done = _is_usable(connection)
        connection.rollback()
    if is_done:
        return
    give_up = time.monotonic() + _LOCKS_S
    while True:
        try:
            with engine.begin() as connection:
                _migrate(connection)
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != LOCKED or time.monotonic() > give_up:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _migrate(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # A host that freezes meanwhile loses the turn, as any that writes.
        connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = {_IDLE_MS}"))
        for key in (MIGRATE_KEY, WRITE_KEY):
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
        connection.execute(text(f"SET LOCAL lock_timeout = {_LOCK_MS}"))
    # Another process may have migrated while this one waited.
    if not _is_usable(connection):
        _upgrade(connection) if revision_of(connection) else create_tables(connection)
        connection.execute(oldest_version.update().values(head=OLDEST))


def _is_usable(connection: Connection) -> bool:
    """Return whether the tables are those of this version, or of a newer one that leaves it its own."""
    revision = revision_of(connection)
    if revision is None or revision <= HEAD:
        return revision == HEAD
    oldest = connection.execute(select(oldest_version.c.head)).scalar_one()
    if oldest > HEAD:
        raise _newer()
    return True


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database; ``None`` for one without tables of ours."""
    if not inspect(connection).has_table(_revision.name):
        return None
    revision: str | None = connection.execute(select(_revision)).scalar()
    return revision


def create_tables(connection: Connection) -> None:
    """Make the tables of every room in an empty database, which then is at the newest revision."""
    import_tables()
    metadata.create_all(connection, checkfirst=False)
    _revision.create(connection)
    connection.execute(_revision.insert().values(version_num=HEAD))


def import_tables() -> None:
    """Import the tables of every room: a process has imported only those of the rooms that it uses."""
    for path in sorted(Path(__file__).parents[1].glob("*/tables.py")):
        importlib.import_module(f"steelyard.{path.parent.name}.tables")


def _upgrade(connection: Connection) -> None:
    if (revision := revision_of(connection)) and revision < FIRST:
        raise StorageUnavailableError(
            f"The state is at revision {revision}, older than the first release (0.2.0, revision {FIRST}). "
            "Start the newest checkout before 0.2.0 on it once, which migrates it; then start this version."
        )
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    # The setting is a template in which % has a meaning.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        with _upgrading:
            command.upgrade(config, HEAD)
    except CommandError as error:
        raise _newer() from error


def _newer() -> StorageUnavailableError:
    return StorageUnavailableError(
        "The state was written by a newer version of Steelyard; install that version or a newer one to "
        "use it."
    )
