"""Files named by the SHA-256 of their bytes, in a directory or in an object store.

A file is whole and durable when ``adopt`` returns, and never changes after: one that cannot be read
is checked against the hash that names it, and reported as damaged when it differs. Its name is not in
any index: its owner refers to it, and ``sweep`` removes files without a reference.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pyarrow as pa
from pyarrow import fs

from steelyard.durable import flush
from steelyard.errors import DataDamagedError, SteelyardError, StorageUnavailableError
from steelyard.storage.damage import ADVICE, DamageNotes

_COPY_BYTES = 4 * 1024 * 1024
_DRAFTS = "drafts"
#: In a folder of its own, so that it is none of the files.
_OWNER = "owner/state"
#: Names of files that are named by their hash, and not of those derived from one.
_BY_HASH = re.compile(r"([0-9a-f]{64})(\.parquet|\.json|\.file|\.manifest\.json)")
#: Unreferenced files are left alone for this long, in seconds: the write that will refer
#: to them may still run.
SWEEP_AFTER_S = 24 * 3600.0


class FrameStore:
    """A place for files named by their hash.

    In a local directory a file is written beside the others, flushed to the disk, renamed, and the
    directory is flushed. An object store shows an object only when it is whole. Safe to use from
    several threads and processes: two that write the same bytes write the same file.
    """

    def __init__(
        self, filesystem: fs.FileSystem, root: str, damage: DamageNotes | None = None
    ) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self._damage = damage
        self.is_local = isinstance(filesystem, fs.LocalFileSystem)
        with raised_as_unavailable():
            filesystem.create_dir(self.root, recursive=True)
            if self.is_local:
                Path(self.root, _DRAFTS).mkdir(exist_ok=True)

    def path_of(self, name: str) -> str:
        """Return the path of a file within the file system."""
        return f"{self.root}/{name}"

    @contextlib.contextmanager
    def draft(self) -> Iterator[Path]:
        """Yield a path on the local disk to write a file to; it is removed at the end."""
        folder = Path(self.root, _DRAFTS) if self.is_local else None
        with raised_as_unavailable():
            handle, name = tempfile.mkstemp(dir=folder, suffix=".draft")
            os.close(handle)
            path = Path(name)
            try:
                yield path
            finally:
                path.unlink(missing_ok=True)

    def adopt(self, draft: Path, suffix: str) -> tuple[str, int]:
        """Make a finished draft a file of the store."""
        with raised_as_unavailable():
            with draft.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
            n_bytes = draft.stat().st_size
            name = f"{sha256}{suffix}"
            if self.is_local:
                draft.replace(Path(self.root, name))
                flush(self.root)
            else:
                self._upload(draft, name)
        return sha256, n_bytes

    def put(self, data: bytes, suffix: str) -> str:
        """Store bytes; give their SHA-256 in hex."""
        with self.draft() as draft:
            draft.write_bytes(data)
            return self.adopt(draft, suffix)[0]

    def put_beside(self, name: str, data: bytes) -> None:
        """Store a file derived from another, under its hash and a suffix; both are removed together."""
        with self.draft() as draft, raised_as_unavailable():
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                # A reader of the name takes its contents for whole.
                os.fsync(file.fileno())
            if self.is_local:
                path = Path(self.root, name)
                draft.replace(path)
                flush(path.parent)
            else:
                self._upload(draft, name)

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a file; ``None`` when it is not there."""
        with raised_as_unavailable():
            info = self.filesystem.get_file_info(self.path_of(name))
        return self.read(name) if info.type == fs.FileType.File else None

    def read(self, name: str) -> bytes:
        """Return the bytes of a file, held against the hash that names it."""
        with self.open(name) as file:
            content = bytes(file.read())
            named = _BY_HASH.fullmatch(name)
            if named is not None and hashlib.sha256(content).hexdigest() != named[1]:
                raise ValueError("The file is not the one that it is named for.")
        return content

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[Any]:
        """Open a file for random access; failures inside are raised as by ``reading``."""
        with self.reading(name), self.filesystem.open_input_file(self.path_of(name)) as file:
            yield file

    @contextlib.contextmanager
    def reading(self, *names: str) -> Iterator[None]:
        """Turn failures to read files into errors of ours: the first file that is damaged is named."""
        try:
            with raised_as_unavailable():
                yield
        except (Exception, pl.exceptions.PanicException) as error:
            if not isinstance(error, SteelyardError) or isinstance(error, StorageUnavailableError):
                self.check(*names, cause=error)
            raise

    def check(self, *names: str, cause: BaseException | None = None) -> None:
        """Raise ``DataDamagedError`` for the first file that is missing or does not match its name."""
        for name in names:
            what = self.damage_of(name) if _BY_HASH.fullmatch(name) else None
            if what is None:
                continue
            part = f"{PurePosixPath(self.root).name}/{name}"
            damaged = DataDamagedError(f"The stored file {part} {what}. {ADVICE}")
            damaged.__cause__ = cause
            if self._damage is not None:
                self._damage.note(f"frames/{part}", damaged)
            raise damaged

    def damage_of(self, name: str, *, deep: bool = True) -> str | None:
        """Return the damage of a file; a deep look reads its content too."""
        with raised_as_unavailable():
            info = self.filesystem.get_file_info(self.path_of(name))
            if info.type != fs.FileType.File:
                return "is missing"
            if not deep:
                return None
            with self.filesystem.open_input_file(self.path_of(name)) as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return None if sha256 == name.partition(".")[0] else "is not what was written"

    def contents(self) -> dict[str, tuple[str, int]]:
        """Return the files that are named by their hash: by it, the name and the size in bytes."""
        return {
            named[1]: (info.base_name, info.size)
            for info in self._infos()
            if (named := _BY_HASH.fullmatch(info.base_name))
        }

    def names(self) -> list[str]:
        """Return the name of every file, sorted."""
        return sorted(info.base_name for info in self._infos())

    def claim(self, owner: str) -> bool:
        """Take a store without an owner; return whether it is the owner's."""
        if not (stored_owner := self.find(_OWNER)):
            with raised_as_unavailable():
                self.filesystem.create_dir(self.path_of(_OWNER.partition("/")[0]), recursive=True)
            self.put_beside(_OWNER, owner.encode())
            stored_owner = self.read(_OWNER)  # of two at once, the later one's
        return stored_owner == owner.encode()

    def sweep(self, live: Collection[str], *, older_than_s: float = SWEEP_AFTER_S) -> list[str]:
        """Remove files without a reference."""
        limit = datetime.now(UTC) - timedelta(seconds=older_than_s)
        removed = []

        def is_old(info: fs.FileInfo) -> bool:
            return older_than_s <= 0 or (info.mtime is not None and info.mtime < limit)

        with raised_as_unavailable():
            for info in self._infos():
                if info.base_name.partition(".")[0] in live or not is_old(info):
                    continue
                # Looked at again: equal content may have been written since they were listed.
                if is_old(self.filesystem.get_file_info(info.path)):
                    # Another process may sweep the same store.
                    with contextlib.suppress(FileNotFoundError):
                        self.filesystem.delete_file(info.path)
                    removed.append(info.base_name)
            if self.is_local:
                self._sweep_drafts(limit)
        return sorted(removed)

    def _infos(self) -> list[fs.FileInfo]:
        with raised_as_unavailable():
            infos = self.filesystem.get_file_info(fs.FileSelector(self.root))
        return [info for info in infos if info.type == fs.FileType.File]

    def _sweep_drafts(self, limit: datetime) -> None:
        # Drafts outlive their write only when the process died.
        for path in Path(self.root, _DRAFTS).iterdir():
            # Meanwhile one may have become a file, or be swept by another process.
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < limit.timestamp():
                    path.unlink()

    def _upload(self, draft: Path, name: str) -> None:
        # Written even when it is there: a sweep goes by the time of the last write.
        path = self.path_of(name)
        with draft.open("rb") as source, self.filesystem.open_output_stream(path) as target:
            while chunk := source.read(_COPY_BYTES):
                target.write(chunk)


def open_store(url: str | Path, folder: str = "", damage: DamageNotes | None = None) -> FrameStore:
    """Open a store; raise ``ValueError`` where the address is not a store's."""
    if isinstance(url, Path) or not urlsplit(url).scheme:
        return FrameStore(fs.LocalFileSystem(), str(Path(url, folder).absolute()), damage)
    shown = _without_secrets(url)
    try:
        filesystem, root = fs.FileSystem.from_uri(url)
        return FrameStore(filesystem, f"{root.rstrip('/')}/{folder}", damage)
    except (ValueError, NotImplementedError, pa.ArrowException) as error:
        # PyArrow repeats the address as it was given, in traces too.
        reason = str(error).replace(url, shown)
        raise ValueError(f"{shown} is no address of a store of frames: {reason}") from None
    except (OSError, StorageUnavailableError) as error:
        # Whoever opens a store may see the server's whole message.
        cause = error.__cause__ or error
        raise StorageUnavailableError(
            f"The store of frames at {shown} cannot be opened: {cause}. Check that the bucket is "
            "there, and the credentials, region and endpoint."
        ) from error


def _without_secrets(url: str) -> str:
    """Return an address without its credentials and options."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place}{parts.path}"


@contextlib.contextmanager
def raised_as_unavailable() -> Iterator[None]:
    """Turn failures of disks, networks and files inside the block into one error of ours."""
    try:
        yield
    except (OSError, pa.ArrowException, pl.exceptions.ComputeError) as error:
        # Paths stay in the cause: a message goes to callers.
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise StorageUnavailableError(
            f"The store of frames cannot be used: {reason}. Check its disk or its object store, and "
            "try again."
        ) from error
