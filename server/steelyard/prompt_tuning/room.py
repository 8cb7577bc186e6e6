"""The room of the words of decisions."""

from __future__ import annotations

from steelyard.datasets.service import DatasetService
from steelyard.errors import errors_of
from steelyard.errors import prompt_tuning as errors
from steelyard.evaluations.models import EvaluatedModels
from steelyard.house import House
from steelyard.jobs.work import Work
from steelyard.prompt_tuning.routes import ROUTES
from steelyard.prompt_tuning.service import PromptTunings
from steelyard.room import Room, jobs_of
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.connected.files import models_in_place
from steelyard.serving.registry import ModelRegistry
from steelyard.settings import home_of


def _open(
    house: House, datasets: DatasetService, models: EvaluatedModels, registry: ModelRegistry
) -> tuple[object, ...]:
    tunings = PromptTunings(house, datasets, models, registry.default)
    datasets.register_reader(tunings.reader_of)
    datasets.register_doubts(tunings.doubts_on)
    return (tunings,)


def _open_runs(
    house: House, datasets: DatasetService, models: EvaluatedModels, declarations: Declarations
) -> Work:
    from steelyard.prompt_tuning.run import PromptTuningRuns
    from steelyard.prompt_tuning.writing import find_writer

    return PromptTuningRuns(
        house.state,
        datasets,
        models,
        find_writer=lambda: find_writer(models_in_place(declarations, home_of(house.settings))),
    )


ROOM = Room(
    name="prompt_tuning",
    after=("evaluations",),
    nouns=("prompt-tuning",),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
    jobs=(jobs_of(PromptTunings, _open_runs),),
)
