"""The checks of ``steelyard doctor`` on the state: its databases, tables and files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli.findings import CheckFinding, fail, ok, warn
from steelyard.settings import Settings, home_of
from steelyard.storage.home import state_url_of

if TYPE_CHECKING:
    from sqlalchemy import URL

    from steelyard.serving.connected.declared import ModelsFile

#: Seconds that a database has to take a connection.
_CONNECT_S = 5
_RESTORE = "Restore it from a backup: steelyard restore."


def check_state(settings: Settings, *, deep: bool = False) -> Iterator[CheckFinding]:
    """Look at the state: sound, of this version's tables, writable, and all files that it names."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    from steelyard.storage.migrate import HEAD

    url = state_url_of(settings)
    try:
        parsed = make_url(url)
    except ArgumentError:
        yield fail(
            "state",
            "the setting state_url is no database URL",
            "Give STEELYARD_STATE_URL as sqlite:///PATH or postgresql+psycopg://….",
        )
        return
    if parsed.get_backend_name() == "sqlite":
        path = Path(parsed.database or "").expanduser().absolute()
        parsed = parsed.set(database=str(path))
        if not path.exists():
            yield ok("state", f"{path} is not there yet; the first start makes it")
            return
        damaged = tuple(_check_databases(settings, path, deep=deep))
        yield from damaged
        if damaged:
            return
    # The password is masked in this form of the URL.
    shown = parsed.render_as_string(hide_password=True)
    revision = _revision(parsed)
    if revision != HEAD:
        yield warn(
            "state",
            f"{shown} is at revision {revision or 'none'}, this version's is {HEAD}",
            "The next start of the server migrates it, where it is older; back it up first.",
        )
        return
    yield from _open_and_write(url, shown)
    yield from _check_golden(url)
    yield from _check_files(settings, deep=deep)


def declared_for_checks(settings: Settings) -> ModelsFile:
    """Return the connected models and routes: the state's, or those of the home's file where it is not sound."""
    from steelyard.errors import SteelyardError
    from steelyard.serving.connected.declared import read_file
    from steelyard.serving.connected.files import declared_in_place
    from steelyard.storage.database import parse_url
    from steelyard.storage.home import state_path_of
    from steelyard.storage.migrate import HEAD

    path = state_path_of(settings)
    try:
        is_there = path is None or path.exists()
        # One of another version is not migrated for that.
        if is_there and _revision(parse_url(state_url_of(settings))) == HEAD:
            return declared_in_place(settings)
    except SteelyardError:  # which another check says
        pass
    return read_file(home_of(settings))


def _check_golden(url: str) -> Iterator[CheckFinding]:
    """Look at when each model's golden rows were last checked; nothing where there are none."""
    import time

    from sqlalchemy import Connection

    from steelyard.alarms.golden_checks import golden_rules, state_of
    from steelyard.alarms.golden_wire import GoldenState
    from steelyard.storage import open_state

    now = time.time()

    def read(connection: Connection) -> list[GoldenState]:
        return [
            state_of(connection, account_id, rule, now)
            for account_id, rule in golden_rules(connection)
        ]

    with closing(open_state(url)) as state:
        states = state.read_now(read)
    for each in states:
        hours = None if each.checked_at is None else (now - each.checked_at) / 3600
        checked = "never checked" if hours is None else f"checked {hours:,.0f} h ago"
        message = f"{each.model}: {checked}, every {each.golden.every_hours:g} h was set"
        if each.is_stale:
            why = each.checks[0].message if each.checks else ""
            yield warn("golden rows", message, why or "Start the server, and a worker of its jobs.")
        else:
            yield ok("golden rows", message)


def _check_databases(settings: Settings, path: Path, *, deep: bool) -> Iterator[CheckFinding]:
    from steelyard.storage.damage import damage_of_database

    for database in (path, home_of(settings).absolute() / "rates.sqlite"):
        if not database.exists():
            continue
        wrong = damage_of_database(database, deep=deep)
        if wrong is not None:
            yield fail(database.stem, f"{database} is damaged: {wrong}", _RESTORE)


def _check_files(settings: Settings, *, deep: bool) -> Iterator[CheckFinding]:
    """Look at every file that the state names; a deep look compares its content with its hash."""
    from steelyard.app.foundation import open_frames
    from steelyard.app.stored_files import find_files, named_in
    from steelyard.storage import open_state

    with closing(open_state(state_url_of(settings))) as state:
        named = state.read_now(named_in)
    n_files = n_damaged = 0
    for named_file, stored, wrong in find_files(named, partial(open_frames, settings), deep=deep):
        n_files += 1
        if wrong is not None:
            n_damaged += 1
            shown = f"{named_file.room}/{named_file.sha256}" if stored is None else stored.path
            yield fail("files", f"{shown}, of {named_file.needed_by}, {wrong}", _RESTORE)
    if not n_damaged:
        looked = "each is what was written" if deep else "--deep reads them too"
        yield ok("files", f"{n_files} files that the state names are there; {looked}")


def _revision(url: URL) -> str | None:
    """Return the revision of a database's tables, and leave it as it is."""
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import DatabaseError

    from steelyard.errors import StorageUnavailableError
    from steelyard.storage.failures import damaged, unavailable
    from steelyard.storage.migrate import revision_of

    arguments: dict[str, Any] = {}
    if url.get_backend_name() == "postgresql":
        url, arguments = url.set(drivername="postgresql+psycopg"), {"connect_timeout": _CONNECT_S}
    try:
        engine = create_engine(
            url, poolclass=NullPool, connect_args=arguments, hide_parameters=True
        )
    except ImportError:
        raise StorageUnavailableError(
            "The database's driver is not installed; pip install 'steelyard[postgres]'."
        ) from None
    try:
        with engine.connect() as connection:
            return revision_of(connection)
    except DatabaseError as error:
        raise (unavailable(error) or damaged(error) or error) from error


def _open_and_write(url: str, shown: str) -> Iterator[CheckFinding]:
    from sqlalchemy import Connection, text

    from steelyard.operations.store import pending_operations
    from steelyard.storage import open_state

    def count_orphans(connection: Connection) -> int:
        connection.execute(text("SELECT 1")).close()
        return sum(
            1
            for row in pending_operations(connection)
            if row.instance is None or not state.is_alive(connection, row.instance)
        )

    with closing(open_state(url)) as state:
        n_orphans = state.write_now(count_orphans)
    yield ok("state", f"{shown}: reachable, writable, tables of this version")
    if n_orphans:
        yield warn(
            "operations",
            f"{n_orphans} accepted by a server that no longer runs, with credit still held",
            "Start the server: it ends them and frees what they hold.",
        )
    else:
        yield ok("operations", "none left hanging")
