"""Fine-tuned models in a store: each a folder of files named by their SHA-256.

A model's name is the SHA-256 of its ``manifest.json``, which names the SHA-256 of every other file.
Files that models have in common are stored once. A process that serves a model keeps a folder of
its files on the local disk, and checks every hash each time that it loads it.

Here: storing, fetching and removing. Not here: the meaning of the files (``steelyard.scoring.tuned``).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from steelyard.errors import DataDamagedError, EngineUnavailableError
from steelyard.storage.frame_store import (
    SWEEP_AFTER_S,
    FrameStore,
    open_store,
    raised_as_unavailable,
)
from steelyard.wire.decoding import decode

MANIFEST = "manifest.json"
_SUFFIX = ".file"
_MANIFEST_SUFFIX = ".manifest.json"
_PARTIAL = ".partial-"
_SHA256 = re.compile(r"[0-9a-f]{64}")
#: Seconds for which a folder of a model in use is left alone: the model may have joined its family
#: since it was asked which are referred to.
_JUST_MADE_S = 60.0


class _Manifest(Struct):
    """The part of a manifest that a store needs: path to SHA-256."""

    files: dict[str, str]


class ArtifactStore:
    """Stores fine-tuned models; safe to use from several threads and processes.

    On a local disk a folder shares its files with the store where both are on one file system, and
    takes no room.
    """

    def __init__(self, store: FrameStore | str | Path, cache: Path) -> None:
        self._store = store if isinstance(store, FrameStore) else open_store(store)
        self._cache = cache

    def put(self, folder: Path) -> str:
        """Store a model; raise ``ValueError`` when a file is not the one that its manifest names."""
        try:
            sent = (folder / MANIFEST).read_bytes()
            files = _read_manifest(sent)
        except (OSError, msgspec.DecodeError, ValueError) as error:
            raise ValueError(
                f"{folder.name} has no {MANIFEST} of a model; train it again."
            ) from error
        for name, file in files.items():
            if not (folder / name).is_file():
                raise ValueError(f"The model lacks its file {name}; train it again.")
            with self._store.draft() as draft:
                shutil.copyfile(folder / name, draft)
                sha256, _ = self._store.adopt(draft, _SUFFIX)
            if sha256 != file:
                raise ValueError(
                    f"The model's file {name} is not the one its {MANIFEST} names; train it again."
                )
        # Last, so that a manifest in the store says that everything it names is there.
        return self._store.put(sent, _MANIFEST_SUFFIX)

    def fetch(self, sha256: str) -> Path:
        """Return a local folder of a model, every hash checked now."""
        try:
            sent = self._store.find(f"{sha256}{_MANIFEST_SUFFIX}")
        except DataDamagedError as error:
            raise _unusable(f"its {MANIFEST} was altered", "files_altered") from error
        if sent is None:
            raise _unusable("it is not in the store", "files_missing")
        try:
            files = _read_manifest(sent)
        except (msgspec.DecodeError, ValueError) as error:
            raise _unusable(f"its {MANIFEST} cannot be read", "files_altered") from error
        folder = self._cache / sha256
        if not _is_whole(folder, sent, files):
            try:
                with raised_as_unavailable():
                    self._fill(folder, sent, files)
            except EngineUnavailableError:
                with contextlib.suppress(DataDamagedError):  # noted where there is any
                    self._store.check(*(f"{file}{_SUFFIX}" for file in files.values()))
                raise
        return folder

    def holds(self, sha256: str) -> bool:
        """Return whether a model is in the store."""
        return self._store.find(f"{sha256}{_MANIFEST_SUFFIX}") is not None

    def claim(self, owner: str) -> bool:
        """Claim an unowned store; return whether it is the owner's."""
        return self._store.claim(owner)

    def sweep(self, live: Collection[str], *, older_than_s: float = SWEEP_AFTER_S) -> list[str]:
        """Remove models without a reference."""
        live_files = set(live)
        for name in self._store.names():
            model = name.removesuffix(_MANIFEST_SUFFIX)
            if model != name and model in live:
                # A manifest that cannot be read protects no files; its model is never served.
                with contextlib.suppress(DataDamagedError, msgspec.DecodeError, ValueError):
                    live_files.update(_read_manifest(self._store.read(name)).values())
        removed = self._store.sweep(live_files, older_than_s=older_than_s)
        if self._cache.is_dir():
            self._sweep_cache(live, older_than_s)
        return removed

    def _sweep_cache(self, live: Collection[str], older_than_s: float) -> None:
        for folder in self._cache.iterdir():
            name, is_partial, _ = folder.name.partition(_PARTIAL)
            if _SHA256.fullmatch(name) is None:
                continue
            if name in live and not is_partial:
                continue
            # A partial one outlives its making only when the process died.
            least_s = older_than_s if is_partial else min(older_than_s, _JUST_MADE_S)
            # It may be renamed now, or another process may sweep the same folder.
            with contextlib.suppress(FileNotFoundError):
                if folder.stat().st_mtime <= time.time() - least_s:
                    shutil.rmtree(folder, ignore_errors=True)

    def _fill(self, folder: Path, sent: bytes, files: Mapping[str, str]) -> None:
        """Make a model's folder, whole or not at all."""
        self._cache.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}{_PARTIAL}", dir=self._cache))
        try:
            for name, file in files.items():
                self._bring(f"{file}{_SUFFIX}", partial / name, name)
            (partial / MANIFEST).write_bytes(sent)
            if not _is_whole(partial, sent, files):
                raise _unusable("a file of it was altered in the store", "files_altered")
            _replace(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _bring(self, stored: str, path: Path, name: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._store.is_local:
            source = Path(self._store.path_of(stored))
            if not source.is_file():
                raise _unusable(f"its file {name} is not in the store", "files_missing")
            try:
                os.link(source, path)
            except OSError:
                # Another file system, or one without links.
                shutil.copyfile(source, path)
            return
        try:
            content = self._store.find(stored)
        except DataDamagedError as error:
            raise _unusable("a file of it was altered in the store", "files_altered") from error
        if content is None:
            raise _unusable(f"its file {name} is not in the store", "files_missing")
        path.write_bytes(content)


def files_of_artifact(store: FrameStore, name: str) -> list[str]:
    """Return the hashes of the files that a stored manifest names; none for any other file."""
    if not name.endswith(_MANIFEST_SUFFIX):
        return []
    return sorted(set(_read_manifest(store.read(name)).values()))


def _read_manifest(sent: bytes) -> dict[str, str]:
    files = decode(sent, _Manifest).files
    for name in files:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or name == MANIFEST:
            raise ValueError("A manifest names a file that cannot be a model's; train it again.")
    return files


def _is_whole(folder: Path, sent: bytes, files: Mapping[str, str]) -> bool:
    """Return whether a folder has exactly a model's bytes."""
    try:
        if (folder / MANIFEST).read_bytes() != sent:
            return False
        for name, sha256 in files.items():
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                    return False
    except OSError:
        return False
    return True


def _replace(partial: Path, folder: Path) -> None:
    """Move a folder into place, over an existing one."""
    try:
        partial.rename(folder)
    except OSError:
        # What is there was not whole a moment ago; or another process has just put it there.
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            partial.rename(folder)
    if not folder.is_dir():
        raise _unusable("its folder cannot be written", "files_missing")


def _unusable(what: str, reason: str) -> EngineUnavailableError:
    return EngineUnavailableError(
        f"The fine-tuned model cannot be loaded: {what}; restore it from a backup, or continue its "
        "family to make another.",
        details=[{"reason": reason}],
    )
