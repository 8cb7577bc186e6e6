"""Every file that a state names, in the stores of all rooms; and which of them are damaged.

For ``steelyard doctor``, and for the files of a backup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection

from steelyard.app.rooms import named_files
from steelyard.errors import DataDamagedError
from steelyard.room import NamedFile
from steelyard.storage.artifacts import files_of_artifact
from steelyard.storage.frame_store import FrameStore

#: Opens the store of a room's files.
OpenFrames = Callable[[str], FrameStore]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that is there: ``path`` is below the folder of all stores."""

    store: FrameStore
    name: str
    path: str


#: The named file, its place, and its damage.
CheckedFile = tuple[NamedFile, StoredFile | None, str | None]


def named_in(connection: Connection) -> list[NamedFile]:
    """Return the files that a state names, each once; those that artifacts name are in the store."""
    return list(
        {
            (named_file.room, named_file.sha256): named_file
            for named_file in named_files(connection)
        }.values()
    )


def find_files(
    named: Iterable[NamedFile], open_frames: OpenFrames, *, deep: bool
) -> Iterator[CheckedFile]:
    """Yield each file with its location, ``None`` where it is missing, and its damage.

    Only a deep look reads contents; every look reads an artifact's manifest for its files.
    """
    named = list(named)
    for room in dict.fromkeys(file.room for file in named):
        store = open_frames(room)
        there = store.contents()
        pending = [file for file in named if file.room == room]
        seen = set()
        while pending:
            file = pending.pop()
            if file.sha256 in seen:
                continue
            seen.add(file.sha256)
            if file.sha256 not in there:
                yield file, None, "is missing"
                continue
            name, n_bytes = there[file.sha256]
            wrong = None
            if file.n_bytes not in (None, n_bytes):
                wrong = f"has {n_bytes} bytes in place of {file.n_bytes}"
            elif deep:
                wrong = store.damage_of(name)
            with suppress(DataDamagedError):
                pending += [
                    NamedFile(room, sha256, file.needed_by)
                    for sha256 in files_of_artifact(store, name)
                ]
            yield file, StoredFile(store, name, f"{room}/{name}"), wrong
