"""Maps of datasets: asked for, followed, stopped, and read.

A map is queued by a row of the state; the job runtime finds it there. There is one of a version by a
model's vectors for ever, so that who asks again gets it.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import numpy as np
import polars as pl
from msgspec import Raw
from numpy.typing import NDArray
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import mark_dataset_used
from steelyard.datasets.versions import Manifest
from steelyard.evaluations import predictions
from steelyard.evaluations.service import EvaluationService
from steelyard.house import House
from steelyard.job_frame.queue import JobQueue
from steelyard.jobs.failures import failure_of
from steelyard.maps import store as rows
from steelyard.maps import wire
from steelyard.maps.points import read_points
from steelyard.maps.progress import Made, decode_made
from steelyard.maps.values import answered_outcomes, expected_outcomes, most_frequent, places_of
from steelyard.operations.write import Write
from steelyard.serving.registry import ModelRegistry
from steelyard.storage.rows import lock_account
from steelyard.wire.filling import filled
from steelyard.wire.jobs import UNFINISHED

_PREDICTED = ["row", "decision_id", "outcomes", "probabilities", "labels"]


class DatasetMaps(JobQueue[wire.DatasetMap, wire.MapPage]):
    """The maps of every account."""

    jobs = rows.MAPS
    page_type = wire.MapPage

    def __init__(
        self,
        house: House,
        datasets: DatasetService,
        evaluations: EvaluationService,
        models: ModelRegistry,
    ) -> None:
        super().__init__(house)
        self._store, self._prediction_files = house.frames("maps"), house.frames("evaluations")
        self._datasets, self._evaluations, self._models = datasets, evaluations, models
        self._dataset_files = house.frames("datasets")
        self._rows = RowStore(self._dataset_files)

    async def create(self, write: Write, request: wire.CreateMap) -> wire.DatasetMap:
        """Queue the map of a version, or return the one that exists or is on its way."""
        await self._writes.replay_known(write)
        caller = write.caller
        at = await self._datasets.dataset_at(caller, request.dataset_id, request.version)
        model = self._models.get(request.model)
        if model.embed is None:
            raise errors.VectorsUnavailableError(
                f"The model {model.name} gives no vectors of texts, so rows cannot be laid out by "
                "it; name a base model that this server runs itself."
            )

        def work(connection: Connection) -> wire.DatasetMap:
            require_dataset(connection, caller.account_id, at.dataset_id, is_new_work=True)
            lock_account(connection, caller.account_id)
            existing = rows.find_of(connection, at.dataset_id, at.version, model.evaluation_key)
            if existing is not None and (
                existing.status in UNFINISHED or existing.status == "succeeded"
            ):
                return self.to_wire(existing)
            self.check_room(connection, caller.account_id)
            now = self._now()
            mark_dataset_used(connection, at.dataset_id, now)
            if existing is not None:
                rows.requeue(connection, existing, at=now)
                return self.to_wire(self.jobs.require(connection, caller, existing.id))
            row = self.add(
                connection,
                write,
                dataset_id=at.dataset_id,
                dataset_version=at.version,
                model=model.name,
                model_sha256=model.evaluation_key,
                rows=at.manifest.rows,
                points=min(at.manifest.rows, wire.MAX_POINTS),
            )
            return self.to_wire(row)

        return await self.queue(write, work)

    @staticmethod
    def to_wire(row: Row[Any]) -> wire.DatasetMap:
        """Return a map as the wire has it."""
        error = failure_of(row)
        made = Made() if row.progress is None else decode_made(row.progress)
        is_run = row.status in ("running", "cancelling")
        return filled(
            wire.DatasetMap,
            row,
            object="dataset.map",
            progress=made.to_wire(row.points) if is_run else None,
            error=None if error is None else error.message,
            error_code=None if error is None else error.code,
        )

    async def points(self, caller: Caller, map_id: str) -> wire.MapPoints:
        """Return the points of a map."""
        row = await self._ready(caller, map_id)
        return await asyncio.to_thread(self._points, row)

    async def values(
        self, caller: Caller, map_id: str, query: wire.MapValuesQuery
    ) -> wire.MapValues:
        """Return the values of each point: its label, and the answer of an evaluation's model."""
        row = await self._ready(caller, map_id)
        at = await self._datasets.labelled_at(caller, row.dataset_id, row.dataset_version)
        scored: tuple[Row[Any], Manifest] | None = None
        if query.evaluation is not None:
            evaluation = await self._evaluations.find(caller, query.evaluation, with_dataset=True)
            _check_evaluation(evaluation, row)
            of = await self._datasets.dataset_at(
                caller, row.dataset_id, evaluation.dataset_version, is_new_work=False
            )
            scored = evaluation, of.manifest
        return await asyncio.to_thread(self._values, row, at.manifest, query.decision, scored)

    async def _ready(self, caller: Caller, map_id: str) -> Row[Any]:
        row = await self.find(caller, map_id)
        if row.status != "succeeded":
            raise errors.MapNotReadyError(
                f"The map is {row.status}; its points are there once it has succeeded."
            )
        return row

    def _points(self, row: Row[Any]) -> wire.MapPoints:
        frame = read_points(self._store, row.result_sha256)
        # Encoded here: a server that encodes so many numbers as it answers blocks all other callers.
        columns = {name: Raw(_encode_column(frame[name])) for name in frame.columns}
        return wire.MapPoints(map=row.id, **cast("dict[str, Any]", columns))

    def _values(
        self,
        row: Row[Any],
        manifest: Manifest,
        decision: str,
        scored: tuple[Row[Any], Manifest] | None,
    ) -> wire.MapValues:
        indexes = read_points(self._store, row.result_sha256, ["index"])["index"].to_numpy()
        expected = expected_outcomes(self._dataset_files, manifest, decision, indexes)
        answers = None if scored is None else self._answers(*scored, decision, indexes)
        answered = [] if answers is None else answers["answered"].to_list()
        outcomes = most_frequent(expected, answered)
        columns: dict[str, Any] = {"answered": None, "is_right": None, "confidence": None}
        if answers is not None:
            columns = {
                "answered": Raw(msgspec.json.encode(places_of(answered, outcomes))),
                "is_right": Raw(_encode_column(answers["is_right"])),
                "confidence": Raw(_encode_column(answers["confidence"])),
            }
        return wire.MapValues(
            map=row.id,
            decision=decision,
            outcomes=outcomes,
            expected=cast("Any", Raw(msgspec.json.encode(places_of(expected, outcomes)))),
            **columns,
        )

    def _answers(
        self,
        evaluation: Row[Any],
        manifest: Manifest,
        decision: str,
        indexes: NDArray[np.int64],
    ) -> pl.DataFrame:
        hashes = [evaluation.predictions_sha256]
        table = predictions.read_table(self._prediction_files, hashes, _PREDICTED)
        frame = cast("pl.DataFrame", pl.from_arrow(table))
        of_decision = frame.filter(pl.col("decision_id") == decision)
        evaluation_rows = self._rows.indexes(manifest, partition="evaluation")
        return answered_outcomes(of_decision, evaluation_rows, indexes)


def _check_evaluation(evaluation: Row[Any], row: Row[Any]) -> None:
    if evaluation.dataset_id != row.dataset_id:
        message = f"evaluation is one of {evaluation.dataset_id}; name one of {row.dataset_id}."
        raise errors.InvalidRequestError.at(("query", "evaluation"), message, "not_allowed")
    if evaluation.status != "succeeded":
        raise errors.EvaluationNotReadyError(
            f"The evaluation is {evaluation.status}; its answers are there once it has succeeded."
        )


def _encode_column(column: pl.Series) -> bytes:
    values = column.cast(pl.Float64).round(4) if column.dtype.is_float() else column
    return msgspec.json.encode(values.to_list())
