"""The room of the words of decisions."""

from __future__ import annotations

from steelyard.datasets.service import DatasetService
from steelyard.evaluations.models import EvaluatedModels
from steelyard.jobs.work import Work
from steelyard.prompt_tuning import store
from steelyard.prompt_tuning.routes import ROUTES
from steelyard.room import House, JobKind, Room
from steelyard.settings import home_of


def _open_runs(house: House) -> Work:
    from steelyard.prompt_tuning.run import PromptTuningRuns
    from steelyard.prompt_tuning.writing import find_writer

    return PromptTuningRuns(
        house.state,
        house.get(DatasetService),
        house.get(EvaluatedModels),
        find_writer=lambda: find_writer(home_of(house.settings)),
    )


ROOM = Room(
    name="prompt_tuning",
    nouns=("prompt-tuning",),
    routes=ROUTES,
    jobs=(JobKind(store.has_unfinished, _open_runs),),
)
