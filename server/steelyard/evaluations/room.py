"""The room of models scored on datasets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from steelyard.datasets.service import DatasetService
from steelyard.evaluations import store
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.routes import ROUTES
from steelyard.jobs.work import Work
from steelyard.room import House, JobKind, Room, files_of


def _open_runs(house: House) -> Work:
    from steelyard.evaluations.run import EvaluationRuns

    return EvaluationRuns(
        house.state,
        house.frames("evaluations"),
        house.get(DatasetService),
        house.get(EvaluatedModels),
    )


def _sweep(house: House) -> Callable[[], object]:
    return partial(store.sweep_predictions, house.state, house.frames("evaluations"))


ROOM = Room(
    name="evaluations",
    routes=ROUTES,
    jobs=(JobKind(store.has_unfinished, _open_runs),),
    files=(files_of("evaluations", "an evaluation", store.live_files),),
    sweeps=(_sweep,),
)
