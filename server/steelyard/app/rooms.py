"""The rooms of the application, in the order in which documents show their routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

from sqlalchemy import Column, Connection

from steelyard.accounts.room import ROOM as ACCOUNTS
from steelyard.alarms.room import ROOM as ALARMS
from steelyard.backups.room import ROOM as BACKUPS
from steelyard.billing.room import ROOM as BILLING
from steelyard.bulk.room import ROOM as BULK
from steelyard.datasets.room import ROOM as DATASETS
from steelyard.datasets.room import ROWS
from steelyard.decision_log.room import FEEDBACK
from steelyard.decision_log.room import ROOM as DECISION_LOG
from steelyard.decisions.room import ROOM as DECISIONS
from steelyard.dialects.room import ROOM as DIALECTS
from steelyard.discovery.room import ROOM as DISCOVERY
from steelyard.evaluations.room import ROOM as EVALUATIONS
from steelyard.families.room import ROOM as FAMILIES
from steelyard.growth.room import ROOM as GROWTH
from steelyard.house import House
from steelyard.http.routing import Route
from steelyard.job_list.room import ROOM as JOBS
from steelyard.labeling.room import ROOM as LABELING
from steelyard.maps.room import ROOM as MAPS
from steelyard.model_use import ModelUse
from steelyard.models.room import ROOM as MODELS
from steelyard.named.room import ROOM as NAMED
from steelyard.people.room import ROOM as PEOPLE
from steelyard.prompt_tuning.room import ROOM as PROMPT_TUNING
from steelyard.review.room import ROOM as REVIEW
from steelyard.room import JobKind, NamedFile, Room
from steelyard.serving.room import ROOM as SERVING
from steelyard.shadows.room import ROOM as SHADOWS
from steelyard.webhooks.room import ROOM as WEBHOOKS

ROOMS: tuple[Room, ...] = (
    SERVING,
    DECISIONS,
    FEEDBACK,
    DIALECTS,
    NAMED,
    DECISION_LOG,
    DISCOVERY,
    MODELS,
    DATASETS,
    EVALUATIONS,
    BULK,
    FAMILIES,
    ROWS,
    REVIEW,
    LABELING,
    MAPS,
    PROMPT_TUNING,
    JOBS,
    SHADOWS,
    WEBHOOKS,
    ALARMS,
    GROWTH,
    ACCOUNTS,
    BILLING,
    PEOPLE,
    BACKUPS,
)


def in_order() -> list[Room]:
    """Return the rooms, each after those that it stands on."""
    by_name = {room.name: room for room in ROOMS}
    order = TopologicalSorter({room.name: room.after for room in ROOMS}).static_order()
    return [by_name[name] for name in order if name in by_name]


def open_all(house: House) -> None:
    """Open the services of all rooms; in a process that answers no requests, those of jobs alone."""
    for room in in_order():
        if room.base is not None:
            house.add(*house.open(room.base))
        if room.open is not None and house.answers:
            house.add(*house.open(room.open))


def sweeps(house: House) -> list[Callable[[], object]]:
    """Return the sweeps of all rooms, each with what it needs of a house."""
    return [partial(sweep, *house.arguments_of(sweep)) for room in ROOMS for sweep in room.sweeps]


def routes() -> tuple[Route, ...]:
    """Return the routes of all rooms."""
    return tuple(route for room in ROOMS for route in room.routes)


def has_jobs(connection: Connection) -> bool:
    """Return whether there is a job for a worker that has not ended, of any kind."""
    return any(kind.has_unfinished(connection) for kind in job_kinds(in_server=False))


def job_kinds(*, in_server: bool) -> list[JobKind]:
    """Return the kinds of jobs that run in processes that answer, or those of workers."""
    return [kind for room in ROOMS for kind in room.jobs if kind.in_server == in_server]


def model_uses(connection: Connection, account_id: str) -> Iterator[ModelUse]:
    """Yield the models that an account's unfinished jobs use, of every kind."""
    for room in ROOMS:
        for kind in room.jobs:
            yield from kind.uses(connection, account_id)


def job_queues() -> tuple[type, ...]:
    """Return the services that queue the jobs of people."""
    return tuple(kind.queue for room in ROOMS for kind in room.jobs if kind.queue is not None)


def named_files(connection: Connection) -> Iterator[NamedFile]:
    """Yield the files that a state names, room by room."""
    for room in ROOMS:
        for files in room.files:
            yield from files(connection)


def names_of_decisions() -> tuple[Column[Any], ...]:
    """Return the columns that name stored decisions, which stay in the state for them."""
    return tuple(column for room in ROOMS for column in room.decisions)
