"""Accepted rows of a labeling job made a dataset: the same selection twice is the same dataset."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.datasets import wire
from steelyard.datasets.canonical import canonical_json
from steelyard.datasets.ingesting import MadeRows, SentRows, read_sent
from steelyard.datasets.service import DatasetService
from steelyard.datasets.uploads import Upload
from steelyard.evaluations.judges import Judges
from steelyard.house import House
from steelyard.labeling.service import read_results, require_ready, teachers_of
from steelyard.labeling.sources import require_source
from steelyard.labeling.store import JOBS
from steelyard.labeling.wire import PROMPT_VERSION, FinalizeJob, LabelingResult
from steelyard.ledger.max_price import priced
from steelyard.operations.write import Write
from steelyard.wire.decoding import decoder_of
from steelyard.wire.violations import BODY, Violations

_SIDES = {
    "row_indices": "examples",
    "training_indices": "training",
    "evaluation_indices": "evaluation",
}
_METHODS: dict[str, Literal["mean_one_hot_teacher_votes", "mean_teacher_probabilities"]] = {
    "votes": "mean_one_hot_teacher_votes",
    "probabilities": "mean_teacher_probabilities",
}

_decode_receipt = decoder_of(wire.InputReceipt).decode


class _FinalizedError(Exception):
    """The job became a dataset while another one was made of the same rows."""


class LabelingFinalizer:
    """Makes datasets of labeling jobs."""

    def __init__(
        self,
        house: House,
        datasets: DatasetService,
        judges: Judges,
    ) -> None:
        self._state, self._store, self._writes = house.state, house.frames("labeling"), house.writes
        self._datasets, self._judges, self._now = datasets, judges, house.now

    async def finalize(self, write: Write, job_id: str, request: FinalizeJob) -> Struct:
        """Make a dataset of the rows that were accepted."""
        await self._writes.replay_known(write)
        selection = _selection_of(request)

        def find(connection: Connection) -> tuple[Row[Any], Row[Any]]:
            job = JOBS.require(connection, write.caller, job_id)
            source = require_source(connection, write.caller, job.source_id)
            return require_ready(job), source

        job, source = await self._state.read(find)
        if job.status == "finalized":
            return await self._made(write, job, selection)
        await self._check_teachers(write, job, request)
        sent_fields = {"name": job.name}
        if request.evaluation_fraction is not None:
            sent_fields["evaluation_fraction"] = f"{request.evaluation_fraction:.17f}"
        with Upload("jsonl", sent_fields) as upload:
            await asyncio.to_thread(self._write, upload, job, source, request)
            sent = await asyncio.to_thread(read_sent, upload, wire.CreateDataset)
            sent = dataclasses.replace(
                sent, labeling=_lineage_of(job, source, selection), used_at=job.created_at
            )
            return await self._create(write, job, sent, selection)

    async def _check_teachers(self, write: Write, job: Row[Any], request: FinalizeJob) -> None:
        """Refuse labels of teachers that have changed since the job was asked for, as the setting says."""
        path = (*BODY, next(field for field in _SIDES if getattr(request, field)))
        await self._judges.check(
            write.caller,
            {teacher.name: path for teacher in teachers_of(job)},
            [] if job.decisions is None else msgspec.json.decode(job.decisions),
            verb="names rows labelled by",
            remedy="discard the job",
        )

    async def _create(
        self, write: Write, job: Row[Any], sent: SentRows, selection: bytes
    ) -> Struct:
        def answer(connection: Connection, dataset: wire.Dataset) -> wire.Dataset:
            moved = JOBS.move(
                connection,
                job.id,
                "finalized",
                at=self._now(),
                only_if=("review_ready",),
                dataset_id=dataset.id,
                selection=selection,
            )
            if not moved:
                raise _FinalizedError
            return dataset

        try:
            return await self._datasets.create(write, sent, MadeRows(answer))
        except _FinalizedError:
            finalized_job = await self._state.read(
                lambda connection: require_ready(JOBS.require(connection, write.caller, job.id))
            )
            return await self._made(write, finalized_job, selection)

    async def _made(self, write: Write, job: Row[Any], selection: bytes) -> wire.Dataset:
        """Return the dataset of a job that was finalized with the same selection."""
        if _explicit(job.selection) != _explicit(selection):
            raise errors.JobFinalizedError(
                f"The job became the dataset {job.dataset_id} with other rows; use that, or label "
                "the source again."
            )
        return await self._datasets.get(write.caller, job.dataset_id)

    def _write(self, upload: Upload, job: Row[Any], source: Row[Any], request: FinalizeJob) -> None:
        """Write the accepted rows to the files of an upload."""
        results = read_results(self._store, job, source)
        violations = Violations()
        for field, part in _SIDES.items():
            indices = getattr(request, field)
            if not indices:
                continue
            file = upload.add_file(part)
            for place, index in enumerate(indices):
                path = (*BODY, field, place)
                if index >= len(results):
                    violations.add(path, f"is not 0 to {len(results) - 1}.", "out_of_range")
                elif not results[index].valid:
                    violations.add(path, "is a row without labels; leave it out.", "not_valid")
                else:
                    file.write(_row_of(results[index]) + b"\n")
        violations.raise_if_any()


def read_finalize(payload: object) -> FinalizeJob:
    """Read which rows become a dataset: all with picked sides, or each side by name; once each."""
    request = priced(FinalizeJob)(payload)
    violations = Violations()
    named = [field for field in _SIDES if getattr(request, field)]
    if not named:
        violations.add(
            (*BODY, "row_indices"), "is missing or empty; name the accepted rows.", "missing"
        )
    if "row_indices" in named:
        for field in named[1:]:
            violations.add((*BODY, field), "is given beside row_indices; give one.", "refused")
    elif request.evaluation_fraction is not None:
        message = "goes with row_indices; leave it out."
        violations.add((*BODY, "evaluation_fraction"), message, "refused")
    seen: set[int] = set()
    for field in named:
        for place, index in enumerate(getattr(request, field)):
            if index in seen:
                message = f"repeats row {index}; name each once."
                violations.add((*BODY, field, place), message, "duplicate")
            seen.add(index)
    violations.raise_if_any()
    return request


def _row_of(result: LabelingResult) -> bytes:
    row = {"context": result.context, "decisions": result.decisions, "targets": result.targets}
    if result.metadata:
        row["metadata"] = result.metadata
    return msgspec.json.encode(row)


def _selection_of(request: FinalizeJob) -> bytes:
    """Return the chosen answers, in a form that does not depend on the order of the rows."""
    chosen: dict[str, Any] = {
        field: sorted(getattr(request, field)) for field in _SIDES if getattr(request, field)
    }
    return canonical_json({**chosen, "evaluation_fraction": request.evaluation_fraction})


def _explicit(selection: bytes) -> dict[str, Any]:
    """Return a selection with the default share of its evaluation rows written out."""
    chosen: dict[str, Any] = msgspec.json.decode(selection)
    if "row_indices" in chosen and chosen["evaluation_fraction"] is None:
        chosen["evaluation_fraction"] = wire.DEFAULT_FRACTION
    return chosen


def _lineage_of(job: Row[Any], source: Row[Any], selection: bytes) -> wire.LabelingLineage:
    teachers = teachers_of(job)
    spec = [
        [(teacher.name, teacher.evaluation_key) for teacher in teachers],
        None if job.decisions is None else msgspec.json.decode(job.decisions),
        job.weighting,
        PROMPT_VERSION,
    ]
    chosen: dict[str, Sequence[int] | None] = msgspec.json.decode(selection)
    return wire.LabelingLineage(
        job_id=job.id,
        source_id=source.id,
        source_sha256=source.sha256,
        source_input_sha256=_decode_receipt(source.receipt).sha256,
        spec_sha256=hashlib.sha256(msgspec.json.encode(spec)).hexdigest(),
        prompt_version=PROMPT_VERSION,
        teacher_models=[teacher.name for teacher in teachers],
        row_indices=sorted(index for field in _SIDES for index in chosen.get(field) or ()),
        selection_sha256=hashlib.sha256(selection).hexdigest(),
        target_method=_METHODS[job.weighting],
    )
