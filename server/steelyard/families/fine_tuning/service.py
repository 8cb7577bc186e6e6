"""The fine-tuning jobs use cases: list them, follow them, stop them, read their held-out records."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import UNSET, UnsetType, structs
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.evaluations.measures.records import (
    RecordMeasures,
    Records,
    UnmeasurableError,
    job_records,
    measure_records,
)
from steelyard.evaluations.prediction_columns import records_of
from steelyard.evaluations.service import EvaluationService
from steelyard.evaluations.store import find_held_out
from steelyard.evaluations.wire import JobRecordPage, RecordGroup
from steelyard.families import fine_tune_store as rows
from steelyard.families.fine_tune_wire import (
    Job,
    JobEvents,
    JobPage,
    JobProgress,
    JobRecordsQuery,
)
from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.fine_tunes import cancel_job, stop_job
from steelyard.families.lineage.lineage import Conditions, Lineage
from steelyard.families.lineage_store import Applied, LineageStore
from steelyard.families.serializers import fine_tune_to_wire
from steelyard.house import House
from steelyard.job_frame.queue import JobQueue
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.operations.write import Write
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import decoder_of
from steelyard.wire.training import CurvePoint

#: Groups of records kept in memory: 10,000 records take about 5 MB.
_CACHED = 4

_decode_progress = decoder_of(JobProgress).decode
_decode_curve = decoder_of(list[CurvePoint]).decode


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """The records of a group of models, and their measures."""

    records: Records
    measures: RecordMeasures


@dataclass(frozen=True, slots=True)
class Waiting:
    """Fine-tunes that wait for a trainer: in all, and of one account."""

    total: int
    of_account: int


class FineTuneJobs(JobQueue[Job, JobPage]):
    """The fine-tunes of every account, which are queued and stopped by its lineage."""

    jobs = rows.FINE_TUNES
    page_type = JobPage

    def __init__(self, house: House, lineages: LineageStore, records: FrameStore) -> None:
        super().__init__(house)
        self._lineages = lineages
        self._records = records
        self._groups_of = functools.lru_cache(_CACHED * 3)(self._read_groups)
        self._scored_of = functools.lru_cache(_CACHED)(self._read_scored)

    @staticmethod
    def to_wire(row: Row[Any]) -> Job:
        """Return a fine-tune as a list tells it, without its curve."""
        return _tell(row, is_deleted=False)

    def items(self, connection: Connection, rows_: Sequence[Row[Any]]) -> list[Job]:
        """Return the fine-tunes of a page; their curves are left out."""
        deleted = rows.deleted_datasets(connection, [row.dataset_id for row in rows_])
        return [_tell(row, is_deleted=row.dataset_id in deleted) for row in rows_]

    def detail(self, connection: Connection, row: Row[Any]) -> Job:
        """Return a fine-tune, with its curve and its held-out evaluation once it succeeded."""
        return read_fine_tune(connection, row)

    async def events(self, caller: Caller, job_id: str) -> JobEvents:
        """Return everything that happened to a fine-tune, oldest first."""

        def work(connection: Connection) -> JobEvents:
            self.jobs.require(connection, caller, job_id)
            return JobEvents(data=rows.events_of(connection, job_id))

        return await self._state.read(work)

    async def records(self, caller: Caller, job_id: str, query: JobRecordsQuery) -> JobRecordPage:
        """Return a page of the held-out decisions as a group of models scored them.

        A fine-tune that has not succeeded has none, nor has one whose dataset had no evaluation
        rows.
        """

        def work(connection: Connection) -> tuple[Row[Any], bool]:
            row = self.jobs.require(connection, caller, job_id)
            return row, bool(rows.deleted_datasets(connection, [row.dataset_id]))

        row, is_deleted = await self._state.read(work)
        if is_deleted:
            raise errors.DatasetDeletedError(
                f"The dataset of the fine-tune {job_id} was deleted, and its held-out records with "
                "it."
            )
        if row.records_sha256 is None:
            return _no_records(query.group, query.offset, query.limit)
        return await asyncio.to_thread(
            self._page,
            row.records_sha256,
            rows.job_of(row).method,
            query.group,
            query.offset,
            query.limit,
        )

    async def held_out(self, caller: Caller, job_id: str) -> tuple[Records, RecordMeasures]:
        """Return the held-out answers of a fine-tune's model, and their measures."""
        row = await self.find(caller, job_id)
        if row.records_sha256 is None:
            raise errors.NotMeasurableError(
                f"The fine-tune {job_id} has no held-out records; add evaluation rows to its dataset "
                "and continue the family."
            )
        method = rows.job_of(row).method
        scored = await asyncio.to_thread(self._scored_of, row.records_sha256, method, "adapted")
        return scored.records, scored.measures

    async def waiting(self, caller: Caller) -> Waiting:
        """Count the fine-tunes that wait, as the start of another one would."""
        lineage = (await self._lineages.read(caller.account_id)).lineage
        return Waiting(
            total=await self._state.read(rows.count_queued),
            of_account=sum(job.status == "queued" for job in lineage.jobs.values()),
        )

    async def cancel(self, write: Write, job_id: str) -> Job:
        """Stop a fine-tune. One that has ended stays as it is."""
        caller = write.caller
        applied: list[Applied] = []

        def work(connection: Connection) -> Job:
            applied.clear()
            row = self.jobs.require(connection, caller, job_id)
            for command in (cancel_job, stop_job):
                change = _command_on(job_id, command)
                applied.append(self._lineages.apply_in(connection, caller.account_id, change))
                row = self.jobs.require(connection, caller, job_id)
                if row.runner is not None and self._state.is_alive(connection, row.runner):
                    break  # its runner stops the trainer first
            return self.detail(connection, row)

        job = await self._writes.once(write, work, window_s=SECONDS_A_DAY)
        for done in applied:
            self._lineages.follow(done)
        return job

    def _page(
        self, sha256: str, method: str, group: RecordGroup, offset: int, limit: int
    ) -> JobRecordPage:
        groups = self._groups_of(sha256)
        if not groups:
            return _no_records(group, offset, limit)
        if group not in groups:
            message = f"group is {group!r}; the fine-tune has {', '.join(groups)}."
            raise errors.InvalidRequestError.at(("query", "group"), message, "not_allowed")
        scored = self._scored_of(sha256, method, group)
        total = len(scored.records)
        data = job_records(scored.records, scored.measures, start=offset, stop=offset + limit)
        return JobRecordPage(
            group=group,
            groups=groups,
            data=data,
            total=total,
            offset=offset,
            limit=limit,
            has_more=offset + len(data) < total,
        )

    def _read_groups(self, sha256: str) -> list[RecordGroup]:
        with self._records.open(f"{sha256}.parquet") as file:
            column = pq.read_table(file, columns=["group"], use_threads=False)["group"]
        groups: list[RecordGroup] = pc.unique(column).to_pylist()
        return groups

    def _read_scored(self, sha256: str, method: str, group: RecordGroup) -> _Scored:
        with self._records.open(f"{sha256}.parquet") as file:
            table = pq.read_table(file, filters=pc.field("group") == group, use_threads=False)
        try:
            records = records_of(table, "targets" if method == "sft" else "rewards")
        except UnmeasurableError as error:
            raise errors.NotMeasurableError(str(error)) from error
        return _Scored(records, measure_records(records))


def read_fine_tune(connection: Connection, row: Row[Any]) -> Job:
    """Return a fine-tune's row as the read of one tells it."""
    is_deleted = bool(rows.deleted_datasets(connection, [row.dataset_id]))
    job = _tell(row, is_deleted=is_deleted, with_curve=True)
    evaluation = find_held_out(connection, row.account_id, row.dataset_id, row.id)
    if evaluation is None:
        return job
    return structs.replace(job, dataset_evaluation=EvaluationService.to_wire(evaluation))


def _no_records(group: RecordGroup, offset: int, limit: int) -> JobRecordPage:
    return JobRecordPage(
        group=group, groups=[], data=[], total=0, offset=offset, limit=limit, has_more=False
    )


def _command_on(
    job_id: str, command: Callable[[Lineage, str, Conditions], LineageChange]
) -> Callable[[Lineage, Conditions], LineageChange]:
    return lambda lineage, conditions: command(lineage, job_id, conditions)


def _tell(row: Row[Any], *, is_deleted: bool, with_curve: bool = False) -> Job:
    job = rows.job_of(row)
    curve: list[CurvePoint] | UnsetType = UNSET
    if with_curve and row.curve is not None:
        curve = _decode_curve(row.curve)
    return fine_tune_to_wire(
        structs.replace(job, rows_deleted=job.rows_deleted or is_deleted),
        progress=None if row.progress is None else _decode_progress(row.progress),
        curve=curve,
    )
