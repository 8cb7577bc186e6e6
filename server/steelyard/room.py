"""A room's contribution to the application: one plain value, which ``steelyard.app`` walks.

A room's value is ``ROOM`` in its ``room.py``. Functions that open something take the house and the services that
they need, by the annotations of their parameters. Nothing registers itself: ``steelyard.app.rooms`` lists the
rooms, and the process's start, router, documents, layers, doctor, backup and sweeper read their values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection

from steelyard.errors import SteelyardError
from steelyard.http.routing import Route
from steelyard.job_frame.queue import JobQueue
from steelyard.jobs.work import Work
from steelyard.model_use import ModelUse
from steelyard.outbox.names import Event


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that the state names: the folder of its store, its hash, and the row that needs it."""

    room: str
    sha256: str
    needed_by: str
    n_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job."""

    #: Returns the runners of the jobs in a worker.
    open: Callable[..., Work]
    #: The service of the jobs that people start; their noun and the models that they use
    #: stand on its ``jobs``.
    queue: type[JobQueue[Any, Any]] | None
    #: Returns whether a job has not ended.
    has_unfinished: Callable[[Connection], bool]
    #: Returns the models that unfinished jobs of an account use: a rollback or a deletion spares
    #: them.
    uses: Callable[[Connection, str], Iterable[ModelUse]]
    #: Whether they run in a process that answers, beside its models, and not in a worker.
    in_server: bool = False


def jobs_of(
    queue: type[JobQueue[Any, Any]],
    open_: Callable[..., Work],
    uses: Callable[[Connection, str], Iterable[ModelUse]] | None = None,
    *,
    in_server: bool = False,
) -> JobKind:
    """Return the kind of the jobs that a service queues; ``uses`` are those of its columns when left out."""
    has_unfinished = queue.jobs.has_unfinished
    return JobKind(open_, queue, has_unfinished, uses or queue.jobs.uses, in_server)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room, which is named as its package; ``nouns`` are first segments of its paths beside that."""

    name: str
    #: Packages that it stands on directly.
    after: tuple[str, ...] = ()
    nouns: tuple[str, ...] = ()
    errors: tuple[type[SteelyardError], ...] = ()
    events: tuple[Event, ...] = ()
    routes: tuple[Route, ...] = ()
    #: Returns services that jobs use too; in every process.
    base: Callable[..., Iterable[object]] | None = None
    #: Returns the services behind its routes, in a process that answers requests.
    open: Callable[..., Iterable[object]] | None = None
    jobs: tuple[JobKind, ...] = ()
    #: Each returns the files of one folder that a state names.
    files: tuple[Callable[[Connection], Iterable[NamedFile]], ...] = ()
    #: Each is run by a server once an hour.
    sweeps: tuple[Callable[..., object], ...] = ()
    #: Its columns that name stored decisions, which stay in the state for them.
    decisions: tuple[Column[Any], ...] = ()


def no_models(connection: Connection, account_id: str) -> tuple[ModelUse, ...]:  # noqa: ARG001
    """Return the models of jobs that use none of an account's."""
    return ()


def files_of(
    room: str, needed_by: str, live: Callable[[Connection], Collection[str]]
) -> Callable[[Connection], list[NamedFile]]:
    """Return a lister of the files in a folder that a state names."""
    return lambda connection: [
        NamedFile(room, sha256, needed_by) for sha256 in sorted(live(connection))
    ]
