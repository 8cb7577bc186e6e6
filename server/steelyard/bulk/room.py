"""The room of partitions of files that workers answer."""

from __future__ import annotations

import time

from steelyard.bulk import store
from steelyard.evaluations.models import EvaluatedModels
from steelyard.house import House
from steelyard.jobs.work import Work
from steelyard.room import JobKind, Room, files_of
from steelyard.serving.registry import ModelRegistry


def _open_runs(house: House, models: EvaluatedModels, registry: ModelRegistry) -> Work:
    from steelyard.bulk.run import BulkRuns

    return BulkRuns(
        house.state,
        house.frames("bulk"),
        models,
        registry.default.name,
        deadline_s=house.settings.deadline_s,
    )


def _sweep(house: House) -> None:
    store.sweep(house.state, house.frames("bulk"), time.time)


ROOM = Room(
    name="bulk",
    after=("evaluations",),
    jobs=(JobKind(_open_runs, None, store.has_unfinished, store.uses),),
    files=(files_of("bulk", "rows that wait for an answer", store.live_files),),
    sweeps=(_sweep,),
)
