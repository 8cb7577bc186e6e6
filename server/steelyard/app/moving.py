"""A home moved to another database and another store of files, or back, while its servers stand still.

Files come first, each held against its hash; rows come last, in one transaction whose rows are read
back before its end. A move that is cut short has left no state, and its files are found by the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from pyarrow import fs
from sqlalchemy import Connection, NullPool, func, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from steelyard.app.foundation import open_frames
from steelyard.app.stored_files import StoredFile, find_files, named_in
from steelyard.backups.copies import BackupError
from steelyard.durable import flush
from steelyard.settings import Settings, frames_url_of
from steelyard.storage import migrate
from steelyard.storage.database import create_engine, parse_url
from steelyard.storage.failures import refused, unavailable
from steelyard.storage.frame_store import FrameStore, raised_as_unavailable
from steelyard.storage.home import make_home, sqlite_url, state_path_of, state_url_of
from steelyard.storage.locks import MIGRATE_KEY, is_in_use
from steelyard.storage.tables import metadata

#: Rows are read and written by so many.
_STREAMED = {"yield_per": 1000}
#: Bytes that are copied at once, and files: an object store takes a trip for each.
_BYTES, _FILES = 4 * 1024 * 1024, 8
#: A process that has a state of PostgreSQL open has a shared lock.
_SERVERS = """
    SELECT count(DISTINCT pid) FROM pg_locks
    WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclass(frozen=True, slots=True)
class MovedHome:
    """How much was moved; ``n_there`` of the files were there before, as they should be."""

    n_files: int
    n_bytes: int
    n_there: int
    n_rows: int


def move_home(settings: Settings, target: Settings) -> MovedHome:
    """Copy a home's state and files to where other settings have theirs, and compare each.

    No server runs on the home, which stays as it is. The target is without a state, and without
    files but those that an earlier move left. Raise ``BackupError`` where that is not so, or
    something is damaged.
    """
    try:
        with _reading(settings) as source:
            files = _find_sound(source, settings)
            _refuse_state(target)
            is_there: list[bool] = []
            if frames_url_of(target) != frames_url_of(settings):
                is_there = _copy_files(files, target)
            with _writing(target) as place:
                n_rows = _copy_rows(source, place)
                _refuse_running(source, settings)
    except SQLAlchemyError as error:
        raise (unavailable(error) or refused(error) or error) from error
    return MovedHome(len(files), sum(map(_size, files)), sum(is_there), n_rows)


@contextmanager
def _reading(settings: Settings) -> Iterator[Connection]:
    """Open the state of a home as it is at one moment."""
    path = state_path_of(settings)
    if path is not None and not path.exists():
        raise BackupError(f"{path} is not there: nothing was stored in this home yet.")
    is_file = path is not None
    with _connect(
        state_url_of(settings), isolation_level="AUTOCOMMIT" if is_file else "REPEATABLE READ"
    ) as source:
        if is_file:  # which the driver would not do before a read
            source.exec_driver_sql("BEGIN")
        _refuse_running(source, settings)
        if migrate.revision_of(source) != migrate.HEAD:
            raise BackupError(
                "The state is of another version of Steelyard; start this version's server once, stop "
                "it, and move the home then."
            )
        yield source


@contextmanager
def _writing(target: Settings) -> Iterator[Connection]:
    """Make empty tables in a place that has none; they and their rows are there at the end or never."""
    path = state_path_of(target)
    if path is None:
        with _connect(state_url_of(target)) as place:
            # A server that is started meanwhile waits until the state is whole.
            place.execute(select(func.pg_advisory_xact_lock(MIGRATE_KEY)))
            _refuse_tables(place)
            yield _with_tables(place)
            place.commit()
        return
    make_home(path.parent)
    part = path.with_name(f"{path.name}.partial")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    with _connect(sqlite_url(part)) as place:
        yield _with_tables(place)
        place.commit()
    flush(part)
    part.rename(path)
    flush(path.parent)


def _with_tables(place: Connection) -> Connection:
    migrate.create_tables(place)
    for table in reversed(metadata.sorted_tables):  # new ones have a row or two
        place.execute(table.delete())
    return place


def _refuse_state(target: Settings) -> None:
    path = state_path_of(target)
    if path is None:
        with _connect(state_url_of(target)) as place:
            _refuse_tables(place)
    elif path.exists():
        raise BackupError(f"{path} is there already; give another folder.")


def _refuse_tables(place: Connection) -> None:
    if inspect(place).get_table_names():
        raise BackupError(
            f"The database {place.engine.url.database} has tables already; give an empty one."
        )


@contextmanager
def _connect(url: str, **options: Any) -> Iterator[Connection]:
    engine = create_engine(parse_url(url), poolclass=NullPool, **options)
    with engine.connect() as connection:
        yield connection


def _refuse_running(source: Connection, settings: Settings) -> None:
    path = state_path_of(settings)
    if path is None:
        is_running = source.execute(text(_SERVERS)).scalar_one() > 0
    else:
        is_running = is_in_use(path.with_name(f"{path.name}.locks"))
    if is_running:
        raise BackupError(
            "A server, a worker or a command has the state open; stop it, and move the home then."
        )


def _find_sound(source: Connection, settings: Settings) -> list[StoredFile]:
    """Return the files that a state names; refuse where one is missing."""
    files, wrong = [], []
    for file, stored, problem in find_files(
        named_in(source), partial(open_frames, settings), deep=False
    ):
        if stored is None or problem is not None:
            wrong.append(f"{file.room}/{file.sha256}, of {file.needed_by}, {problem}")
        else:
            files.append(stored)
    if wrong:
        raise BackupError(
            f"Nothing was moved: {'; '.join(wrong)}. `steelyard doctor --deep` lists everything that is "
            "damaged; restore it from a backup, or delete what needs it."
        )
    return files


def _copy_files(files: Iterable[StoredFile], target: Settings) -> list[bool]:
    """Copy the files that are not there, and read each back; return which of them were there."""
    expected = {stored.path: stored for stored in files}
    whole = open_frames(target, "")
    with raised_as_unavailable():
        infos = whole.filesystem.get_file_info(fs.FileSelector(whole.root, recursive=True))
    for info in infos:
        path = info.path.removeprefix(f"{whole.root}/")
        if (
            info.type == fs.FileType.File
            and path not in expected
            and "drafts" not in Path(path).parts
        ):
            raise BackupError(
                f"The store of files has {path}, which is none of this home's; give an empty one."
            )
    stores = {room: open_frames(target, room) for room in {path.split("/")[0] for path in expected}}

    def copy(stored: StoredFile) -> bool:
        store = stores[stored.path.split("/")[0]]
        if store.damage_of(stored.name) is None:
            return True
        _copy_file(stored, store)
        if (wrong := store.damage_of(stored.name)) is not None:
            raise BackupError(f"{stored.path} {wrong} where it was copied to; try again.")
        return False

    with ThreadPoolExecutor(_FILES, thread_name_prefix="steelyard-move") as pool:
        return list(pool.map(copy, expected.values()))


def _copy_file(stored: StoredFile, store: FrameStore) -> None:
    with store.draft() as draft:
        hasher = hashlib.sha256()
        with stored.store.open(stored.name) as source, draft.open("wb") as copied:
            while chunk := source.read(_BYTES):
                hasher.update(chunk)
                copied.write(chunk)
        sha256, dot, suffix = stored.name.partition(".")
        if hasher.hexdigest() != sha256:
            raise BackupError(f"{stored.path} is not what was written; restore it from a backup.")
        store.adopt(draft, f"{dot}{suffix}")


def _size(stored: StoredFile) -> int:
    with raised_as_unavailable():
        info = stored.store.filesystem.get_file_info(stored.store.path_of(stored.name))
    return int(info.size)


def _copy_rows(source: Connection, place: Connection) -> int:
    """Copy every table, parents first, and compare its rows with those read back; return how many."""
    n_rows = 0
    for table in metadata.sorted_tables:
        sent, written = _TableDigest(), _TableDigest()
        with source.execute(select(table), execution_options=_STREAMED) as result:
            for rows in result.mappings().partitions():
                place.execute(table.insert(), [sent.add(row) for row in rows])
        with place.execute(select(table), execution_options=_STREAMED) as result:
            for row in result.mappings():
                written.add(row)
        if written != sent:
            raise BackupError(f"The rows of {table.name} are not those that were sent; try again.")
        n_rows += sent.n_rows
        column = table.autoincrement_column
        if column is not None and place.dialect.name == "postgresql":
            highest = select(func.coalesce(func.max(column), 0) + 1).scalar_subquery()
            counter = func.pg_get_serial_sequence(table.name, column.name)
            place.execute(select(func.setval(counter, highest, False)))
    return n_rows


@dataclass(slots=True)
class _TableDigest:
    """How many rows there are, and a sum of their hashes, which no order of theirs changes."""

    n_rows: int = 0
    total: int = 0

    def add(self, row: Any) -> dict[str, Any]:
        """Count a row, and return it."""
        values = dict(row)
        digest = hashlib.sha256(msgspec.msgpack.encode(list(values.values()))).digest()
        self.n_rows += 1
        self.total = (self.total + int.from_bytes(digest)) % (1 << 256)
        return values
