"""The evaluation that a fine-tune makes of its own model, from its held-out records.

It is one as ``POST /v1/evaluations`` would make of the model on the same rows, so that it is read,
compared and found again like any other, and those rows are not scored a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlalchemy import Connection

from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt
from steelyard.errors import NotMeasurableError, SteelyardError
from steelyard.evaluations import predictions as frames
from steelyard.evaluations import store as rows
from steelyard.evaluations.measures.records import UnmeasurableError
from steelyard.evaluations.measuring import SUPERVISION, measure_file
from steelyard.evaluations.prediction_columns import SCHEMA
from steelyard.evaluations.rows import ReadyRow, RowRenderer, timed_rows
from steelyard.families.lineage.lineage import FamilyModel, FineTune, adapter_of
from steelyard.families.tuned import TunedModels, tuned_evaluation_key
from steelyard.ids import new_id
from steelyard.serving.registry import ModelRegistry
from steelyard.storage.frame_store import FrameStore, raised_as_unavailable


class HeldOutEvaluations:
    """Makes evaluations of held-out records."""

    def __init__(
        self,
        store: FrameStore,
        datasets: DatasetService,
        models: ModelRegistry,
        tuned: TunedModels,
    ) -> None:
        self._store, self._datasets = store, datasets
        self._models, self._tuned = models, tuned

    def make(
        self,
        job: FineTune,
        account_id: str,
        at: DatasetAt,
        artifact_sha256: str,
        records: Path,
        model: FamilyModel | None = None,
    ) -> dict[str, Any] | None:
        """Store the predictions of a fine-tune's model and their measures; it blocks.

        A ``model`` whose artifact is stored is asked a few rows, to time them.

        ``None`` when no decision was scored, or rows were left out that the model's ancestors
        was trained on: an evaluation is of every row.
        """
        with raised_as_unavailable():
            scored = pq.read_table(
                records, filters=pc.field("group") == "adapted", use_threads=False
            )
        if len(scored) == 0 or job.split.validation_rows < at.split.evaluation:
            return None
        base = self._models.get(job.base)
        renderer = RowRenderer(base.decide)
        ready = [
            renderer.render(row, place)
            for place, row in enumerate(self._datasets.evaluation_rows(at))
        ]
        times = {} if model is None else self._time(model, artifact_sha256, ready)
        predictions = frames.write_table(self._store, _predictions(scored, ready, times))
        try:
            detail = measure_file(self._store, predictions, SUPERVISION[job.method])
        except UnmeasurableError as error:
            raise NotMeasurableError(str(error)) from error
        adapter = adapter_of(job.id)
        return {
            "id": new_id("eval"),
            "account_id": account_id,
            "dataset_id": at.dataset_id,
            "dataset_version": at.version,
            "dataset_sha256": at.sha256,
            "evaluation_sha256": at.evaluation_sha256,
            "method": job.method,
            "model_id": adapter,
            "model_sha256": tuned_evaluation_key(artifact_sha256, base.evaluation_key),
            "model_label": adapter,
            "model_name": job.family,
            "training_job_id": job.id,
            "status": "succeeded",
            "evaluation_rows": len(ready),
            "completed_rows": len(ready),
            "decisions": detail.metrics.n,
            "metrics": msgspec.json.encode(detail.metrics),
            "predictions_sha256": predictions,
            "detail_sha256": self._store.put(msgspec.json.encode(detail), ".json"),
        }

    def _time(
        self, model: FamilyModel, artifact_sha256: str, ready: Sequence[ReadyRow]
    ) -> dict[int, float]:
        """Return how many milliseconds a few rows of all lengths take, by their places.

        A model whose base is elsewhere is asked nothing more: it would cost.
        """
        if self._models.get(model.base).is_connected:
            return {}
        times: dict[int, float] = {}
        by_length = sorted(ready, key=lambda row: row.characters)
        # Without its times the evaluation is there all the same.
        with suppress(SteelyardError), self._tuned.holding(model, artifact_sha256) as hosted:
            for row in by_length[timed_rows(len(by_length))]:
                began = perf_counter()
                hosted.queue.submit(row.request).result()
                times[row.place] = (perf_counter() - began) * 1e3
        self._tuned.forget(model.adapter)
        return times


def _predictions(
    scored: pa.Table, ready: Sequence[ReadyRow], times: Mapping[int, float]
) -> pa.Table:
    """Return scored decisions as predictions of an evaluation."""
    places = scored["row"].to_pylist()
    table = pa.table(
        {
            **{name: scored[name] for name in SCHEMA.names if name in scored.schema.names},
            "context_tokens": [ready[place].context_tokens for place in places],
            "facets": [ready[place].facets for place in places],
            "input_tokens": [ready[place].input_tokens for place in places],
            "latency_ms": pa.array(map(times.get, places), pa.float64()),
            # A fine-tune's records have no reader.
            "unstated": pa.nulls(len(places), pa.float64()),
        }
    )
    return table.select(SCHEMA.names).cast(SCHEMA)


def insert_held_out(
    connection: Connection, values: dict[str, Any], model: FamilyModel | None, at: float
) -> None:
    """Write an evaluation that was made, of a model that joined or of one that did not."""
    named = {} if model is None else {"version": model.version, "model_label": model.ref}
    rows.EVALUATIONS.add(connection, {**values, **named, "created_at": at, "updated_at": at})
    rows.publish_success(connection, values["id"])
