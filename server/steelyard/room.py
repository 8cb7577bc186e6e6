"""What a room hands over to the application: one plain value, which ``steelyard.app`` walks.

A room's value is ``ROOM`` in its ``room.py``. Nothing registers itself: ``steelyard.app.rooms`` lists the
rooms, and router, documents, job worker, doctor, backup and sweeper read their values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from sqlalchemy import Column, Connection

from steelyard.http.routing import Route
from steelyard.jobs.work import Work
from steelyard.settings import Settings
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class House:
    """What jobs and sweeps are opened on: ``services`` by their classes, ``frames`` by a room's name."""

    settings: Settings
    state: State
    frames: Callable[[str], FrameStore]
    services: Mapping[type, Any]
    #: Columns of all rooms that name stored decisions.
    decisions: tuple[Column[Any], ...] = ()

    def get(self, kind: type[T]) -> T:
        """Return the service of a class."""
        return cast("T", self.services[kind])


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that the state names: the folder whose store has it, its hash, and what needs it."""

    room: str
    sha256: str
    needed_by: str
    n_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job: whether one has not ended, and what runs them in a worker."""

    has_unfinished: Callable[[Connection], bool]
    open: Callable[[House], Work]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room: ``nouns`` are first segments of its paths beside its name."""

    name: str
    nouns: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    jobs: tuple[JobKind, ...] = ()
    #: Each returns what a state names of one folder of files.
    files: tuple[Callable[[Connection], Iterable[NamedFile]], ...] = ()
    #: Each returns what a server runs once an hour.
    sweeps: tuple[Callable[[House], Callable[[], object]], ...] = ()
    #: Its columns that name stored decisions, which stay in the state for them.
    decisions: tuple[Column[Any], ...] = ()


def files_of(
    room: str, needed_by: str, live: Callable[[Connection], Collection[str]]
) -> Callable[[Connection], list[NamedFile]]:
    """Return what lists the files that a state names of a folder."""
    return lambda connection: [
        NamedFile(room, sha256, needed_by) for sha256 in sorted(live(connection))
    ]
