"""The room of rows labelled by other models."""

from __future__ import annotations

from steelyard.datasets.service import DatasetService
from steelyard.errors import errors_of
from steelyard.errors import labeling as errors
from steelyard.evaluations.judges import Judges
from steelyard.evaluations.models import EvaluatedModels
from steelyard.families.lineage_store import LineageStore
from steelyard.house import House
from steelyard.jobs.work import Work
from steelyard.labeling import store
from steelyard.labeling.finalizing import LabelingFinalizer
from steelyard.labeling.reviewed import LabelingReviews
from steelyard.labeling.routes import ROUTES
from steelyard.labeling.service import LabelingJobs, uses
from steelyard.labeling.sources import LabelingSources
from steelyard.labeling.teachers import Teachers
from steelyard.review.reviews import Reviews
from steelyard.review.service import DraftService
from steelyard.room import Room, files_of, jobs_of
from steelyard.serving.registry import ModelRegistry


def _open(
    house: House,
    registry: ModelRegistry,
    lineages: LineageStore,
    models: EvaluatedModels,
    datasets: DatasetService,
    drafts: DraftService,
    reviews: Reviews,
    judges: Judges,
) -> tuple[object, ...]:
    counter = registry.default.decide.tokenizer
    teachers = Teachers(registry, lineages, models, judges)
    return (
        LabelingSources(house, counter),
        teachers,
        LabelingJobs(house, teachers, counter, drafts),
        LabelingFinalizer(house, datasets, judges),
        LabelingReviews(house, drafts, reviews),
    )


def _open_runs(house: House, models: EvaluatedModels) -> Work:
    from steelyard.labeling.run import LabelingRuns

    return LabelingRuns(house.state, house.frames("labeling"), models)


def _sweep(house: House) -> None:
    store.sweep_files(house.state, house.frames("labeling"))


ROOM = Room(
    name="labeling",
    after=("models",),
    errors=errors_of(errors),
    events=("labeling.review_ready",),
    routes=ROUTES,
    open=_open,
    jobs=(jobs_of(LabelingJobs, _open_runs, uses),),
    files=(files_of("labeling", "labeling", store.live_files),),
    sweeps=(_sweep,),
)
