"""Open the services of families, and the loader of their models."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from steelyard.datasets.service import DatasetService
from steelyard.evaluations.judges import Judges
from steelyard.families.bounds import FamilyBounds
from steelyard.families.fine_tuning.rows import TuningRows
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.families.lineage.fees import Tariff
from steelyard.families.lineage.lineage import LineageRules
from steelyard.families.lineage_store import LineageStore
from steelyard.families.lineage_writes import LineageWrites
from steelyard.families.service import FamilyService
from steelyard.families.store import dataset_of_family
from steelyard.families.tuned import TunedModels
from steelyard.house import House
from steelyard.outbox.names import Event
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.scoring.shipped import READER
from steelyard.serving.registry import Engines, ModelRegistry
from steelyard.settings import home_of
from steelyard.storage.artifacts import ArtifactStore

#: The store of fine-tunes' files, and the folder of those that run.
EVENTS: tuple[Event, ...] = (
    "gate.passed",
    "gate.failed",
    "family.moved",
    "family.switched_off",
    "family.rolled_back",
)
FOLDER = "fine_tunes"


def jobs_folder(house: House) -> Path:
    """Return the folder of the fine-tunes that run here."""
    return home_of(house.settings) / FOLDER


def _load_tuned(
    folder: Path, base: Any, *, threads: int | None, adapter: str, host: RemoteHost | None
) -> Scorer:
    # Imported by the first tuned model: libraries of heads are slow to import.
    from steelyard.scoring.tuned import load_tuned  # noqa: PLC0415

    return load_tuned(folder, base, threads=threads, host=host, hosted_name=adapter)


def open_base(house: House, engines: Engines, registry: ModelRegistry) -> tuple[object, ...]:
    """Return the lineages and the tuned models, for calls and for jobs."""
    settings = house.settings
    artifacts = ArtifactStore(house.frames("models"), home_of(settings) / "models")
    tuned = TunedModels(
        artifacts,
        engines.bases,
        partial(_load_tuned, host=engines.host),
        find_base=registry.find,
        max_loaded=settings.loaded_models,
        max_queue=settings.max_queue,
        threads=settings.threads or None,
        close_s=settings.shutdown_s,
    )
    house.close_at_end(tuned)
    lineages = LineageStore(
        house.state,
        lambda: LineageRules.of(settings, registry.names),
        engines=tuned if house.answers else None,
        wake=house.wake,
        uses=house.model_uses,
    )
    return (
        artifacts,
        tuned,
        lineages,
        TuningRows(
            house.state,
            house.frames("datasets"),
            registry.tokenizer_of,
            has_reader=lambda: registry.find(READER.name) is not None,
        ),
    )


def open_families(
    house: House,
    datasets: DatasetService,
    lineages: LineageStore,
    tuning_rows: TuningRows,
    registry: ModelRegistry,
    artifacts: ArtifactStore,
    tuned: TunedModels,
    judges: Judges,
) -> tuple[object, ...]:
    """Return the services of families and of their fine-tunes."""
    settings = house.settings
    writes = LineageWrites(lineages, house.writes, warm_wait_s=settings.warm_wait_s)
    families = FamilyService(
        lineages,
        writes,
        tuning_rows,
        registry,
        tariff=Tariff.of(settings),
        judges=judges,
        prepare=house.prepare,
    )
    datasets.register_reader(families.reader_of)
    datasets.register_families(dataset_of_family)
    ticker = house.tick(
        families.tick, name="steelyard-lineage", failure="Could not update the lineage of models"
    )
    # A model that was made, or has loaded, serves at once rather than at the next look.
    house.job_ends.append(ticker.wake)
    tuned.on_loaded = ticker.wake
    fine_tunes = FineTuneJobs(house, lineages, house.frames(FOLDER))
    bounds = FamilyBounds(lineages, writes, fine_tunes, datasets, artifacts)
    return writes, families, fine_tunes, bounds
