"""The room of rows labelled by other models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from steelyard.evaluations.models import EvaluatedModels
from steelyard.jobs.work import Work
from steelyard.labeling import store
from steelyard.labeling.routes import ROUTES
from steelyard.room import House, JobKind, Room, files_of


def _open_runs(house: House) -> Work:
    from steelyard.labeling.run import LabelingRuns

    return LabelingRuns(house.state, house.frames("labeling"), house.get(EvaluatedModels))


def _sweep(house: House) -> Callable[[], object]:
    return partial(store.sweep_files, house.state, house.frames("labeling"))


ROOM = Room(
    name="labeling",
    routes=ROUTES,
    jobs=(JobKind(store.has_unfinished, _open_runs),),
    files=(files_of("labeling", "labeling", store.live_files),),
    sweeps=(_sweep,),
)
