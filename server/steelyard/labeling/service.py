"""Jobs of labeling: start, follow, cancel, and show the teachers' answers for review.

A job is queued by a row of the state, with its price held; the job runtime finds it there.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import UNSET, structs
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.decisions.tokens import TokenCounter
from steelyard.house import House
from steelyard.job_frame.queue import JobQueue
from steelyard.jobs.failures import failure_of
from steelyard.labeling import files, wire
from steelyard.labeling import store as rows
from steelyard.labeling.judging import verdict_of
from steelyard.labeling.reading import count_tokens, decisions_json
from steelyard.labeling.sources import require_source
from steelyard.labeling.summary import Summary
from steelyard.labeling.teachers import JobTeacher, Teachers
from steelyard.ledger.money import to_usd
from steelyard.model_use import ModelUse
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.operations.write import Write
from steelyard.review.service import DraftService
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled
from steelyard.wire.violations import BODY, Violations

#: Statuses of jobs whose labels can be reviewed.
REVIEWABLE = ("review_ready", "finalized")

_decode_teachers = decoder_of(list[JobTeacher]).decode
_decode_summary = decoder_of(Summary).decode

#: Columns that count rows as they are labelled.
_COUNTS = ("completed_rows", "valid_rows", "agreement_rows", "error_rows")


class LabelingJobs(JobQueue[wire.LabelingJob, wire.LabelingJobPage]):
    """The labeling jobs of every account."""

    jobs = rows.JOBS
    page_type = wire.LabelingJobPage

    def __init__(
        self,
        house: House,
        teachers: Teachers,
        counter: TokenCounter,
        drafts: DraftService,
    ) -> None:
        super().__init__(house)
        self._drafts = drafts
        self._store = house.frames("labeling")
        self._teachers, self._counter = teachers, counter

    async def create(self, write: Write, request: wire.CreateLabelingJob) -> wire.LabelingJob:
        """Ask teachers to label a source; the price is held with it, in one transaction."""
        await self._writes.replay_known(write)
        caller = write.caller
        uploaded = await self._state.read(
            lambda connection: require_source(connection, caller, request.source_id)
        )
        items = msgspec.to_builtins(request.decisions or [])
        teachers, warnings = await self._teachers.choose(caller, request.teacher_models, items)
        decisions, task_tokens = None, 0
        if request.decisions is not None:
            decisions = decisions_json(items)
            task_tokens = await asyncio.to_thread(count_tokens, self._counter, decisions)
        n_decisions = 0
        if any(teacher.thought_tokens for teacher in teachers):
            n_decisions = await asyncio.to_thread(self._count_decisions, uploaded, len(items))

        def work(connection: Connection) -> wire.LabelingJob:
            source = require_source(connection, caller, request.source_id)
            _check_decisions(source, decisions)
            tokens = source.tokens + source.open_rows * task_tokens
            price_nano = sum(
                (tokens + n_decisions * teacher.thought_tokens) * teacher.price_nano
                for teacher in teachers
            )
            self.check_order(
                connection, caller.account_id, price_nano, request.max_price_usd, "The labeling"
            )
            row = self.add(
                connection,
                write,
                source_id=source.id,
                name=request.name or source.name,
                teachers=msgspec.json.encode(teachers),
                decisions=None if decisions is None else decisions.encode(),
                weighting=request.weighting,
                rows=source.rows,
                price_nano=price_nano,
                **dict.fromkeys(_COUNTS, 0),
            )
            return structs.replace(self.to_wire(row), warnings=warnings or UNSET)

        return await self.queue(write, work, window_s=SECONDS_A_DAY)

    def _count_decisions(self, source: Row[Any], n_given: int) -> int:
        """Return how many decisions a teacher is asked; rows without their own have those given."""
        rows_of_source = map(msgspec.json.decode, files.read_rows(self._store, source.sha256))
        return sum(
            len(row["decisions"]) if "decisions" in row else n_given for row in rows_of_source
        )

    @staticmethod
    def to_wire(row: Row[Any]) -> wire.LabelingJob:
        """Return a job as the wire has it."""
        summary = None if row.summary is None else _decode_summary(row.summary)
        error = failure_of(row)
        return filled(
            wire.LabelingJob,
            row,
            teacher_models=[teacher.name for teacher in teachers_of(row)],
            price_usd=to_usd(row.price_nano),
            dataset_id=UNSET if row.dataset_id is None else row.dataset_id,
            error=UNSET if error is None else error.message,
            error_code=UNSET if error is None else error.code,
            warnings=UNSET,
            decisions=UNSET if summary is None else summary.decisions,
            teachers=UNSET if summary is None else summary.teachers,
        )

    async def results(
        self, caller: Caller, job_id: str, query: wire.ResultsQuery
    ) -> wire.LabelingResults:
        """Return a page of rows with the teachers' answers."""

        def find(connection: Connection) -> tuple[Row[Any], Row[Any]]:
            job = self.jobs.require(connection, caller, job_id)
            source = require_source(connection, caller, job.source_id)
            return require_ready(job), source

        job, source = await self._state.read(find)
        if job.dataset_id is not None:
            await self._drafts.check_apart(caller, job.dataset_id)
        results = await asyncio.to_thread(
            read_results, self._store, job, source, query.offset, query.limit
        )
        return wire.LabelingResults(
            data=results,
            total=job.rows,
            offset=query.offset,
            limit=query.limit,
            has_more=query.offset + len(results) < job.rows,
        )

    async def discard(self, write: Write, job_id: str) -> wire.LabelingJob:
        """Drop a job whose labels are ready, without a dataset; they stay until its source goes."""

        def work(connection: Connection) -> wire.LabelingJob:
            row = self.jobs.require(connection, write.caller, job_id)
            if row.status == "finalized":
                raise errors.JobFinalizedError(
                    f"The job became the dataset {row.dataset_id}; delete that in its place."
                )
            if row.status != "discarded":
                require_ready(row)
                only_if = ("review_ready",)
                self.jobs.move(connection, row.id, "discarded", at=self._now(), only_if=only_if)
            return self.to_wire(self.jobs.require(connection, write.caller, job_id))

        return await self._writes.once(write, work)


def _check_decisions(source: Row[Any], decisions: str | None) -> None:
    if source.open_rows and decisions is None:
        violations = Violations()
        message = f"is missing; {source.open_rows} rows of the source carry none."
        violations.add((*BODY, "decisions"), message, "missing")
        violations.raise_if_any()


def require_ready(job: Row[Any]) -> Row[Any]:
    """Return a job whose labels can be reviewed, or refuse it."""
    if job.status not in REVIEWABLE:
        raise errors.LabelingNotReadyError(
            f"The labeling job is {job.status}; its labels are there once it is review_ready."
        )
    return job


def uses(connection: Connection, account_id: str) -> list[ModelUse]:
    """Return the teachers of an account's unfinished jobs."""
    return [
        ModelUse(id=job.id, adapter=teacher.model_id)
        for job in rows.JOBS.unfinished_of_account(connection, account_id)
        for teacher in teachers_of(job)
    ]


def teachers_of(job: Row[Any]) -> list[JobTeacher]:
    """Return the teachers of a job."""
    return _decode_teachers(job.teachers)


def read_results(
    store: FrameStore, job: Row[Any], source: Row[Any], offset: int = 0, limit: int | None = None
) -> list[wire.LabelingResult]:
    """Return rows with the teachers' answers; it blocks."""
    teachers = teachers_of(job)
    n = len(teachers)
    shared = None if job.decisions is None else msgspec.json.decode(job.decisions)
    stored = files.read_rows(store, source.sha256, offset, limit)
    answers = list(
        files.read_answers(
            store, job.answers_sha256, offset * n, None if limit is None else limit * n
        )
    )
    results = []
    for place, text in enumerate(stored):
        sent = msgspec.json.decode(text)
        judgments = [judgment for _, _, judgment in answers[place * n : place * n + n]]
        decisions = sent.get("decisions", shared)
        verdict = verdict_of(judgments, job.weighting)
        messages = [judgment.error for judgment in judgments if judgment.error]
        results.append(
            wire.LabelingResult(
                index=offset + place,
                context=sent["context"],
                decisions=decisions,
                teachers=[
                    wire.TeacherJudgment(
                        model=teacher.name,
                        labels=judgment.labels or UNSET,
                        probabilities=judgment.probabilities or UNSET,
                        error=judgment.error or UNSET,
                    )
                    for teacher, judgment in zip(teachers, judgments, strict=True)
                ],
                valid=verdict.is_valid,
                agreement=verdict.has_agreement,
                targets=verdict.targets or UNSET,
                metadata=sent.get("metadata", UNSET),
                error=UNSET if verdict.is_valid else " ".join(dict.fromkeys(messages)),
            )
        )
    return results
