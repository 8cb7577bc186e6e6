"""The composition of a server: open rooms from settings, and routes from rooms."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import PurePosixPath

from steelyard import tracing
from steelyard.app import rooms
from steelyard.app.foundation import database_damage, open_house
from steelyard.app.services import ApiServices
from steelyard.app.sweep import Sweeper
from steelyard.house import House
from steelyard.jobs.child import WorkerChild
from steelyard.jobs.runtime import JobRuntime
from steelyard.operations.service import LEASE_GRACE_S, OperationLog
from steelyard.serving.base import ModelLoader, NamedModelLoader
from steelyard.serving.judge_setting import declare_judge
from steelyard.serving.registry import ModelRegistry
from steelyard.settings import Settings, home_of, read_settings
from steelyard.storage.damage import STATE, DamageNotes

#: Seconds between two looks for jobs of processes that answer, which others began or are to stop.
_LOOK_S = 2.0


@contextmanager
def open_service(
    settings: Settings | None = None,
    *,
    load_model: ModelLoader | None = None,
    load_further: NamedModelLoader | None = None,
    prepares_jobs: bool = False,
) -> Iterator[ApiServices]:
    """Open the state, load every model, and return the services of an HTTP application.

    Where jobs are prepared, the process that runs them gets ready meanwhile.
    """
    settings = settings or read_settings()
    with ExitStack() as closing:
        worker = WorkerChild(dataclasses.asdict(settings))
        closing.callback(worker.close)
        if prepares_jobs and settings.jobs == "on":
            worker.prepare()
        closing.enter_context(tracing.exporting())
        declare_judge(settings)
        house = open_house(settings, load_model, load_further, closing)
        house.get(ModelRegistry).warm_up()
        _drop_repaired(house)
        operations = OperationLog(
            house.state,
            accounts_enabled=house.has_accounts,
            lease_s=settings.deadline_s + LEASE_GRACE_S,
        )
        house.add(operations)
        if settings.jobs == "on":

            def on_job_end() -> None:
                for call in house.job_ends:
                    call()

            has_jobs = functools.partial(house.state.read_now, rooms.has_jobs)
            worker.start(has_jobs, on_job_end)
            house.close_at_end(worker)
        runtimes: list[JobRuntime] = []

        def wake() -> None:
            worker.wake()
            for runtime in runtimes:
                runtime.wake()

        prepare = worker.expect if settings.jobs == "on" else house.prepare
        rooms.open_all(dataclasses.replace(house, wake=wake, prepare=prepare))
        for kind in rooms.job_kinds(in_server=True):
            runtime = JobRuntime(house.state, [house.open(kind.open)], look_s=_LOOK_S)
            runtimes.append(closing.enter_context(runtime))
        sweeper = Sweeper(
            house.state,
            operations,
            retention_days=settings.retention_days,
            text_days=settings.text_days,
            further=rooms.sweeps(house),
        )
        house.close_at_end(sweeper)
        yield ApiServices.of(house)


def _drop_repaired(house: House) -> None:
    """Forget damage that was met by an earlier server and is no more."""
    notes = DamageNotes(home_of(house.settings))
    for part in notes.found():
        if part == STATE:
            is_whole = database_damage(house.settings) is None
        else:
            room, name = PurePosixPath(part).parts[-2:]
            is_whole = house.frames(room).damage_of(name) is None
        if is_whole:
            notes.drop(part)
