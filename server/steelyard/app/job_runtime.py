"""The job worker: what jobs need, opened from settings, and the runtime that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from steelyard import tracing
from steelyard.app import rooms
from steelyard.app.foundation import (
    lay_foundation,
    open_datasets,
    open_tuned,
    rows_to_tune_on,
    rules_of_lineages,
)
from steelyard.datasets.service import DatasetService
from steelyard.evaluations.models import EvaluatedModels
from steelyard.families.fine_tuning.rows import TuningRows
from steelyard.families.lineage_store import LineageStore
from steelyard.jobs.runtime import JobRuntime
from steelyard.models.evaluated import EvaluatedFamilies
from steelyard.room import House
from steelyard.serving.base import ModelLoader, NamedModelLoader
from steelyard.serving.registry import ModelRegistry
from steelyard.settings import Settings, read_settings
from steelyard.storage.artifacts import ArtifactStore


@contextmanager
def open_worker(
    settings: Settings | None = None,
    *,
    load_model: ModelLoader | None = None,
    load_further: NamedModelLoader | None = None,
) -> Iterator[JobRuntime]:
    """Open what jobs need, and run them until the end of the block."""
    settings = settings or read_settings()
    with ExitStack() as closing:
        closing.enter_context(tracing.exporting())
        on = lay_foundation(settings, load_model, load_further, closing)
        datasets = open_datasets(on)
        lineages = LineageStore(on.state, lambda: rules_of_lineages(on))
        tuned = EvaluatedFamilies(on.models, lineages, open_tuned(on))
        house = House(
            settings,
            on.state,
            on.frames,
            {
                ArtifactStore: on.artifacts(),
                DatasetService: datasets,
                EvaluatedModels: EvaluatedModels(on.models, tuned),
                LineageStore: lineages,
                ModelRegistry: on.models,
                TuningRows: rows_to_tune_on(on),
            },
            rooms.names_of_decisions(),
        )
        works = [kind.open(house) for room in rooms.ROOMS for kind in room.jobs]
        yield closing.enter_context(JobRuntime(on.state, works, on_begin=on.models.end_rests))
