"""The room of models scored on datasets."""

from __future__ import annotations

from steelyard.datasets.service import DatasetService
from steelyard.decision_log.service import DecisionLog
from steelyard.errors import errors_of
from steelyard.errors import evaluations as errors
from steelyard.evaluations import store
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.frontier import EvaluationFrontier
from steelyard.evaluations.judges import Judges
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.rates import EvaluatedRates
from steelyard.evaluations.routes import ROUTES
from steelyard.evaluations.service import EvaluationService
from steelyard.house import House
from steelyard.jobs.work import Work
from steelyard.room import Room, files_of, jobs_of
from steelyard.serving.registry import ModelRegistry


def _open_base(registry: ModelRegistry) -> tuple[object, ...]:
    return (EvaluatedModels(registry),)


def _open(
    house: House, datasets: DatasetService, models: EvaluatedModels, log: DecisionLog
) -> tuple[object, ...]:
    log.register_rates(EvaluatedRates(house.frames("evaluations")).find)
    evaluations = EvaluationService(house, datasets, models)
    datasets.register_reader(evaluations.reader_of)
    figures = EvaluationFigures(
        evaluations, house.frames("evaluations"), datasets=datasets, rows=house.frames("datasets")
    )
    judges = Judges(datasets, must_qualify=house.settings.judges == "qualified")
    return evaluations, figures, judges, EvaluationFrontier(house.state, datasets, models, figures)


def _open_runs(house: House, datasets: DatasetService, models: EvaluatedModels) -> Work:
    from steelyard.evaluations.run import EvaluationRuns

    return EvaluationRuns(house.state, house.frames("evaluations"), datasets, models)


def _sweep(house: House) -> None:
    store.sweep_predictions(house.state, house.frames("evaluations"))


ROOM = Room(
    name="evaluations",
    after=("datasets", "proof"),
    errors=errors_of(errors),
    events=("evaluation.succeeded",),
    routes=ROUTES,
    base=_open_base,
    open=_open,
    jobs=(jobs_of(EvaluationService, _open_runs),),
    files=(files_of("evaluations", "an evaluation", store.live_files),),
    sweeps=(_sweep,),
)
