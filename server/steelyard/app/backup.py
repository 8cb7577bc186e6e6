"""Copies of a home: made while its server runs, checked, and put in the place of one.

A copy is a folder of its own: the database, which SQLite's online backup takes as it is at one moment,
and every file that it names, each held against its hash. ``manifest.json`` comes last: a copy without
it was interrupted. Copies share equal files by hard links among each other, and never with a home.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec
from sqlalchemy import NullPool, create_engine

from steelyard.app.stored_files import CheckedFile, find_files, named_in
from steelyard.backups.copies import (
    MANIFEST,
    BackupEntry,
    BackupError,
    BackupManifest,
    places_of,
    whole_copies,
)
from steelyard.durable import flush
from steelyard.settings import Settings, home_of
from steelyard.storage.damage import damage_of_database
from steelyard.storage.frame_store import open_store
from steelyard.storage.home import make_home, sqlite_url
from steelyard.storage.locks import is_in_use
from steelyard.storage.migrate import HEAD, revision_of
from steelyard.version import __version__
from steelyard.wire.decoding import decode

_FORMAT = 1
_STATE, _FRAMES = "state.sqlite", "frames"
#: What of a home is no file of the state and is kept all the same: which samples were loaded.
_SAMPLES = "samples"
_CHUNK_BYTES = 4 * 1024 * 1024
#: How often the database is copied again because what it named was removed meanwhile.
_TRIES = 3


def make_backup(
    settings: Settings, folder: Path, on_file: Callable[[int, int], None] = lambda *_: None
) -> tuple[Path, BackupManifest]:
    """Copy a home into a new folder of the one given; its server may run."""
    state_path, frames = places_of(settings)
    home = home_of(settings).absolute()
    if not state_path.exists():
        raise BackupError(f"{state_path} is not there: nothing was stored in {home} yet.")
    folder = folder.expanduser().absolute()
    if folder.resolve().is_relative_to(home.resolve()):
        raise BackupError(f"{folder} is in the home that it is to be a copy of; choose another.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = max(whole_copies(folder), default=None)
    copy = folder / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    try:
        copy.mkdir(mode=0o700)
    except FileExistsError:
        raise BackupError(f"{copy} is there already; try again in a second.") from None
    try:
        files = _copy_named(state_path, frames, copy, before, on_file)
        for mark in sorted((home / _SAMPLES).glob("*")):
            place = f"{_SAMPLES}/{mark.name}"
            files[place] = _copy_file(mark, copy / place)
        manifest = BackupManifest(
            format=_FORMAT, version=__version__, made_at=time.time(), files=files
        )
        _flush_folders(copy)
        _write_durably(copy / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        flush(folder)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise
    return copy, manifest


def find_backup(folder: Path) -> Path:
    """Return the folder if it is a backup, else the newest whole backup in it."""
    folder = folder.expanduser().absolute()
    if (folder / MANIFEST).exists():
        return folder
    newest = max(whole_copies(folder), default=None)
    if newest is None:
        raise BackupError(
            f"{folder} holds no whole backup: none in it has a {MANIFEST}, which is written last."
        )
    return newest


def check_backup(copy: Path) -> BackupManifest:
    """Read every file of a copy and hold it against the manifest."""
    try:
        manifest = decode((copy / MANIFEST).read_bytes(), BackupManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise BackupError(f"{copy / MANIFEST} cannot be read; use another backup.") from error
    if manifest.format != _FORMAT:
        raise BackupError(
            f"{copy} was made by Steelyard {manifest.version}; restore it with that version."
        )
    wrong = []
    for name, entry in manifest.files.items():
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts:
            wrong.append(f"{name} lies outside")
            continue
        try:
            if _entry_of(copy / name) != entry:
                wrong.append(f"{name} is not what was written")
        except OSError as error:
            wrong.append(f"{name} cannot be read ({error.strerror})")
    if _STATE not in manifest.files:
        wrong.append(f"{_STATE} is not in it")
    if wrong:
        raise BackupError(f"{copy} is damaged: {'; '.join(wrong)}. Use another backup.")
    return manifest


def restore_backup(settings: Settings, copy: Path, *, force: bool = False) -> Path | None:
    """Put a copy in the place of a home; returns where the old home is now, if there was one."""
    home = home_of(settings).absolute()
    if places_of(settings) != (home / _STATE, home / _FRAMES):
        raise BackupError(
            "A backup is restored into a home as a whole; unset STEELYARD_STATE_URL and "
            "STEELYARD_FRAMES_URL."
        )
    manifest = check_backup(copy)
    _refuse_running(home)
    has_data = (home / _FRAMES).exists() or any(home.glob(f"{_STATE}*"))
    if has_data and not force:
        raise BackupError(
            f"{home} holds data; give another --home, or --force, which keeps what is there beside it."
        )
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = home.with_name(f"{home.name}.restoring-{stamp}") if has_data else home
    make_home(target)
    try:
        _fill(target, copy, manifest)
        if not has_data:
            return None
        _refuse_running(home)
        aside = home.with_name(f"{home.name}.before-{stamp}")
        try:
            home.rename(aside)
        except OSError as error:
            raise BackupError(
                f"{home} cannot be renamed ({error.strerror}); move what is in it elsewhere, and "
                "restore without --force."
            ) from error
        target.rename(home)
        flush(home.parent)
    except BaseException:
        if has_data:
            shutil.rmtree(target, ignore_errors=True)
        raise
    return aside


def _copy_named(
    state_path: Path,
    frames: Path,
    copy: Path,
    before: Path | None,
    on_file: Callable[[int, int], None],
) -> dict[str, BackupEntry]:
    """Copy the database and the files it names; again where one was removed meanwhile."""
    wrong: list[str] = []
    for _ in range(_TRIES):
        state = _copy_state(state_path, copy / _STATE)
        files, wrong = _copy_files(copy, frames, before, on_file)
        if not wrong:
            return {_STATE: state, **files}
    raise BackupError(
        f"Nothing was copied: {'; '.join(wrong)}. `steelyard doctor --deep` lists everything that is "
        "damaged; restore it from an earlier backup, or delete what needs it."
    )


def _copy_state(state_path: Path, target: Path) -> BackupEntry:
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    live = sqlite3.connect(f"{state_path.as_uri()}?mode=rw", uri=True)
    with contextlib.closing(live), contextlib.closing(sqlite3.connect(target)) as made:
        try:
            live.backup(made)
            # One file, with nothing beside it; a server makes it as it likes it.
            made.execute("PRAGMA journal_mode = DELETE").close()
        except sqlite3.DatabaseError as error:
            raise BackupError(f"{state_path} cannot be copied: {error}.") from error
    wrong = damage_of_database(target)
    if wrong is not None:
        raise BackupError(f"{state_path} is damaged: {wrong}. Restore it from an earlier backup.")
    flush(target)
    return _entry_of(target)


def _copy_files(
    copy: Path, frames: Path, before: Path | None, on_file: Callable[[int, int], None]
) -> tuple[dict[str, BackupEntry], list[str]]:
    """Copy the files that the copied database names; return them, and the missing or damaged ones."""
    files: dict[str, BackupEntry] = {}
    wrong = []
    named = list(_named_files(copy / _STATE, frames))
    for n_copied, (file, stored, problem) in enumerate(named):
        on_file(n_copied, len(named))
        if stored is None or problem is not None:
            wrong.append(f"{file.room}/{file.sha256}, of {file.needed_by}, {problem}")
            continue
        target = f"{_FRAMES}/{stored.path}"
        entry = None if before is None else _share(before / target, copy / target, file.sha256)
        try:
            entry = entry or _copy_file(Path(stored.store.path_of(stored.name)), copy / target)
        except FileNotFoundError:
            wrong.append(f"{stored.path}, of {file.needed_by}, is missing")
            continue
        files[target] = entry
        if entry.sha256 != file.sha256:
            wrong.append(f"{stored.path}, of {file.needed_by}, is not what was written")
    return files, wrong


def _named_files(state: Path, frames: Path) -> Iterator[CheckedFile]:
    """Find the files that a database names, without opening it as a server does."""
    engine = create_engine(sqlite_url(state), poolclass=NullPool)
    with engine.connect() as connection:
        if revision_of(connection) != HEAD:
            raise BackupError(
                f"{state.name} is of another version of Steelyard; start this version's server once, "
                "or use that version."
            )
        named = named_in(connection)
    return find_files(named, partial(open_store, frames), deep=False)


def _share(earlier: Path, target: Path, sha256: str) -> BackupEntry | None:
    """Link a file of an earlier copy if it is unchanged; else return ``None``."""
    try:
        entry = _entry_of(earlier)
        if entry.sha256 != sha256:
            return None
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not target.exists():
            os.link(earlier, target)
    except OSError:  # it is not there, or the file system knows no links
        return None
    return entry


def _copy_file(source: Path, target: Path) -> BackupEntry:
    """Copy a file durably, and return its size and hash."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    hasher, n_bytes = hashlib.sha256(), 0
    with source.open("rb") as read:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as written:
            while chunk := read.read(_CHUNK_BYTES):
                hasher.update(chunk)
                n_bytes += written.write(chunk)
            written.flush()
            os.fsync(written.fileno())
    return BackupEntry(n_bytes, hasher.hexdigest())


def _fill(target: Path, copy: Path, manifest: BackupManifest) -> None:
    """Copy a checked copy into a home; the database comes last, so that a part is no home yet."""
    partial_state = target / f"{_STATE}.partial"
    for name, entry in manifest.files.items():
        place = partial_state if name == _STATE else target / name
        if _copy_file(copy / name, place) != entry:
            raise BackupError(f"{copy / name} changed while it was copied; use another backup.")
    for file, _, problem in _named_files(partial_state, target / _FRAMES):
        if problem is not None:
            raise BackupError(
                f"{copy} is not whole: {file.room}/{file.sha256}, of {file.needed_by}, {problem}. Use "
                "another backup."
            )
    with contextlib.closing(sqlite3.connect(partial_state)) as state, state:
        # The backup that made the copy runs in it; here it is over.
        state.execute("DELETE FROM model_setups WHERE kind = 'backup'").close()
    _flush_folders(target)
    partial_state.rename(target / _STATE)
    flush(target)


def _refuse_running(home: Path) -> None:
    if is_in_use(home / f"{_STATE}.locks"):
        raise BackupError(f"A server or another command runs on {home}; stop it first.")


def _entry_of(path: Path) -> BackupEntry:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return BackupEntry(file.tell(), sha256)


def _write_durably(path: Path, content: bytes) -> None:
    draft = path.with_name(f"{path.name}.partial")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    flush(path.parent)


def _flush_folders(folder: Path) -> None:
    """Flush the entries of a folder and of every folder in it to the disk."""
    for path in folder.rglob("*"):
        if path.is_dir():
            flush(path)
    flush(folder)
