"""The room of families of tuned models, and of the fine-tunes that grow them."""

from __future__ import annotations

from steelyard.datasets.service import DatasetService
from steelyard.errors import errors_of, families
from steelyard.families import fine_tune_store
from steelyard.families.fine_tuning import routes as fine_tuning
from steelyard.families.fine_tuning.files import FineTuneFiles
from steelyard.families.fine_tuning.rows import TuningRows
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.families.lineage_store import LineageStore
from steelyard.families.opening import EVENTS, FOLDER, jobs_folder, open_base, open_families
from steelyard.families.routes import ROUTES
from steelyard.families.tuned import TunedModels
from steelyard.house import House
from steelyard.jobs.work import Work
from steelyard.room import Room, files_of, jobs_of
from steelyard.serving.base import parse_base_models
from steelyard.serving.registry import ModelRegistry
from steelyard.storage.artifacts import ArtifactStore


def _open_runs(
    house: House,
    datasets: DatasetService,
    models: ModelRegistry,
    lineages: LineageStore,
    tuning_rows: TuningRows,
    artifacts: ArtifactStore,
    tuned: TunedModels,
) -> Work:
    from steelyard.families.fine_tuning.bases import TrainerBases
    from steelyard.families.fine_tuning.held_out import HeldOutEvaluations
    from steelyard.families.fine_tuning.run import FineTuneRuns

    bases = TrainerBases(models, parse_base_models(house.settings.base_models))
    return FineTuneRuns(
        house.state,
        lineages,
        tuning_rows,
        datasets,
        artifacts,
        house.frames(FOLDER),
        folder=jobs_folder(house),
        bases=bases,
        find_base=models.find,
        reader_for=bases.reader_for,
        threads=house.settings.threads,
        held_out=HeldOutEvaluations(house.frames("evaluations"), datasets, models, tuned),
        dataset_files=house.frames("datasets"),
    )


def _sweep(house: House, artifacts: ArtifactStore) -> None:
    FineTuneFiles(house.state, artifacts, house.frames(FOLDER), jobs_folder(house)).sweep()


ROOM = Room(
    name="families",
    after=("evaluations", "review", "trainer"),
    nouns=("fine-tuning",),
    errors=errors_of(families),
    events=EVENTS,
    routes=(*ROUTES, *fine_tuning.ROUTES),
    base=open_base,
    open=open_families,
    jobs=(jobs_of(FineTuneJobs, _open_runs),),
    files=(
        files_of(FOLDER, "the held-out rows of a fine-tune", fine_tune_store.live_records),
        files_of("models", "a fine-tuned model", fine_tune_store.live_artifacts),
    ),
    sweeps=(_sweep,),
)
