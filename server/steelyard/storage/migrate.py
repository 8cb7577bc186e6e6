"""Bringing a database to the newest revision of the tables.

Whether that is needed is found with a plain look-up, so that a start that has nothing to migrate
does not load Alembic.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from steelyard.errors import StorageUnavailableError
from steelyard.storage.locks import MIGRATE_KEY

#: The newest revision in ``migrations/versions``.
HEAD = "0017"

MIGRATIONS = Path(__file__).parent / "migrations"

# What Alembic runs is kept in globals of its own: one migration at a time in a process.
_upgrading = threading.Lock()


def bring_to_head(engine: Engine) -> None:
    """Migrate in one transaction; safe when several processes do it at once."""
    with engine.connect() as connection:
        is_done = revision_of(connection) == HEAD
        connection.rollback()
    if is_done:
        return
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATE_KEY})
        # Another process may have migrated while this one waited.
        if revision_of(connection) != HEAD:
            _upgrade(connection)


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database; ``None`` for one without tables of ours."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(
        text("SELECT version_num FROM alembic_version")
    ).scalar()
    return revision


def _upgrade(connection: Connection) -> None:
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
        raise StorageUnavailableError(
            "The state was written by a newer version of Steelyard; install that version or a "
            "newer one to use it."
        ) from error
