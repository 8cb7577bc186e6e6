"""The room of rows laid out as points."""

from __future__ import annotations

from steelyard.datasets.service import DatasetService
from steelyard.errors import errors_of
from steelyard.errors import maps as errors
from steelyard.evaluations.service import EvaluationService
from steelyard.house import House
from steelyard.jobs.work import Work
from steelyard.maps import store
from steelyard.maps.routes import ROUTES
from steelyard.maps.service import DatasetMaps
from steelyard.room import Room, files_of, jobs_of
from steelyard.serving.registry import ModelRegistry


def _open(
    house: House, datasets: DatasetService, evaluations: EvaluationService, registry: ModelRegistry
) -> tuple[object, ...]:
    maps = DatasetMaps(house, datasets, evaluations, registry)
    datasets.register_reader(maps.reader_of, store.erase_maps)
    return (maps,)


def _open_runs(house: House, datasets: DatasetService, registry: ModelRegistry) -> Work:
    from steelyard.maps.run import MapRuns

    frames = house.frames
    return MapRuns(house.state, frames("maps"), datasets, frames("datasets"), registry)


def _sweep(house: House) -> None:
    store.sweep_files(house.state, house.frames("maps"))


ROOM = Room(
    name="maps",
    after=("evaluations",),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
    jobs=(jobs_of(DatasetMaps, _open_runs),),
    files=(files_of("maps", "a map", store.live_files),),
    sweeps=(_sweep,),
)
