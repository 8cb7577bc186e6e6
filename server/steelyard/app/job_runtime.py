"""The job worker: what jobs need, opened from settings, and the runtime that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from steelyard import tracing
from steelyard.alarms.tables import alarm_feedback
from steelyard.app.foundation import (
    lay_foundation,
    open_datasets,
    open_tuned,
    rows_to_tune_on,
    rules_of_lineages,
)
from steelyard.bulk.run import BulkRuns
from steelyard.datasets.store_owner import sweep_owned
from steelyard.decision_log.archive import store as archive_rows
from steelyard.decision_log.archive.run import ArchiveRuns
from steelyard.decision_log.tables import feedback
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.run import EvaluationRuns
from steelyard.families.fine_tuning.bases import TrainerBases
from steelyard.families.fine_tuning.held_out import HeldOutEvaluations
from steelyard.families.fine_tuning.run import FineTuneRuns
from steelyard.families.lineage_store import LineageStore
from steelyard.jobs.runtime import JobRuntime
from steelyard.labeling.run import LabelingRuns
from steelyard.maps.run import MapRuns
from steelyard.models.evaluated import EvaluatedFamilies
from steelyard.prompt_tuning.run import PromptTuningRuns
from steelyard.prompt_tuning.writing import find_writer
from steelyard.serving.base import ModelLoader, NamedModelLoader, further_sources
from steelyard.settings import Settings, home_of, read_settings
from steelyard.shadows.tables import shadow_answers

#: What refers to stored decisions: those that it names stay in the state.
KEPT_BY = (feedback.c.decision_id, alarm_feedback.c.decision_id, shadow_answers.c.decision_id)


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
        state = on.state
        datasets, predictions = open_datasets(on), on.frames("evaluations")
        lineages = LineageStore(state, lambda: rules_of_lineages(on))
        tuned = EvaluatedFamilies(on.models, lineages, open_tuned(on))
        models = EvaluatedModels(on.models, tuned)
        evaluations = EvaluationRuns(state, predictions, datasets, models)
        labeling = LabelingRuns(state, on.frames("labeling"), models)
        fine_tunes = FineTuneRuns(
            state,
            lineages,
            rows_to_tune_on(on),
            datasets,
            on.artifacts(),
            on.frames("fine_tunes"),
            folder=home_of(settings) / "fine_tunes",
            bases=TrainerBases(on.models, further_sources(settings)),
            find_base=on.models.find,
            threads=settings.threads,
            held_out=HeldOutEvaluations(predictions, datasets, on.models),
        )
        tunings = PromptTuningRuns(
            state, datasets, models, find_writer=lambda: find_writer(home_of(settings))
        )
        maps = MapRuns(state, on.frames("maps"), datasets, on.rows, on.models)
        archive = on.archive()
        archivings = ArchiveRuns(
            state,
            archive,
            kept_by=KEPT_BY,
            sweep_files=partial(sweep_owned, state, archive.store, archive_rows.live_files),
        )
        bulk = BulkRuns(
            state, on.frames("bulk"), models, on.models.default.name, deadline_s=settings.deadline_s
        )
        works = [archivings, bulk, evaluations, fine_tunes, labeling, maps, tunings]
        yield closing.enter_context(JobRuntime(state, works, on_begin=on.models.end_rests))
