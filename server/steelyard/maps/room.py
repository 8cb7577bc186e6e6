"""The room of rows laid out as points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from steelyard.datasets.service import DatasetService
from steelyard.jobs.work import Work
from steelyard.maps import store
from steelyard.maps.routes import ROUTES
from steelyard.room import House, JobKind, Room, files_of
from steelyard.serving.registry import ModelRegistry


def _open_runs(house: House) -> Work:
    from steelyard.maps.run import MapRuns

    return MapRuns(
        house.state,
        house.frames("maps"),
        house.get(DatasetService),
        house.frames("datasets"),
        house.get(ModelRegistry),
    )


def _sweep(house: House) -> Callable[[], object]:
    return partial(store.sweep_files, house.state, house.frames("maps"))


ROOM = Room(
    name="maps",
    routes=ROUTES,
    jobs=(JobKind(store.has_unfinished, _open_runs),),
    files=(files_of("maps", "a map", store.live_files),),
    sweeps=(_sweep,),
)
