"""Every file that a state names, in the stores of all rooms; and which of them are damaged.

For ``steelyard doctor``, and for what is copied in a backup.
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


#: What is named, where it is, and what is wrong with it.
Found = tuple[NamedFile, StoredFile | None, str | None]


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
) -> Iterator[Found]:
    """Yield each file with where it is, ``None`` for a missing one, and what is wrong with it.

    Only a deep look reads contents; each artifact's manifest is read by any, for the files it names.
    """
    named = list(named)
    for room in dict.fromkeys(one.room for one in named):
        store = open_frames(room)
        there = store.contents()
        pending = [one for one in named if one.room == room]
        seen = set()
        while pending:
            one = pending.pop()
            if one.sha256 in seen:
                continue
            seen.add(one.sha256)
            if one.sha256 not in there:
                yield one, None, "is missing"
                continue
            name, n_bytes = there[one.sha256]
            wrong = None
            if one.n_bytes not in (None, n_bytes):
                wrong = f"has {n_bytes} bytes in place of {one.n_bytes}"
            elif deep:
                wrong = store.damage_of(name)
            with suppress(DataDamagedError):
                pending += [
                    NamedFile(room, sha256, one.needed_by)
                    for sha256 in files_of_artifact(store, name)
                ]
            yield one, StoredFile(store, name, f"{room}/{name}"), wrong
