"""Answering a partition: its rows are scored as ``decide`` scores them, and kept with their answers.

Answers of a partition whose process died are made again: nothing is charged for them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import msgspec
from sqlalchemy import Connection

from steelyard import errors
from steelyard.bulk import store as rows
from steelyard.bulk.columns import Answered, with_answers
from steelyard.bulk.files import read_partition, write_answers
from steelyard.caller import Caller
from steelyard.decisions.validation import read_request
from steelyard.evaluations.models import EvaluatedModels
from steelyard.jobs.failures import Failure
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import LostRunError, Run, Work
from steelyard.serving.decide import AnswerService
from steelyard.serving.registry import HostedModel
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore

#: Name of this kind of job.
BULK = "bulk_run"
#: Rows that are answered between two looks whether to stop.
_AT_ONCE = 64


@dataclass(eq=False, slots=True)
class BulkRuns(Work):
    """Partitions of bulk runs as a kind of job; ``default`` names the model of runs that name none."""

    name: ClassVar[str] = BULK

    state: State
    store: FrameStore
    models: EvaluatedModels
    default: str
    _: KW_ONLY
    deadline_s: float
    now: Callable[[], float] = time.time

    def pending(self, connection: Connection) -> list[PendingJob]:
        """Return the jobs that a worker may take."""
        return rows.pending(connection)

    def claim(self, connection: Connection, job: PendingJob) -> None:
        """Write that a partition is answered."""
        rows.claim(connection, job)

    def open(self, job: PendingJob) -> BulkRun:
        """Return the run of a partition."""
        return BulkRun(job, self)

    def fail(self, job: PendingJob, error: errors.SteelyardError) -> None:
        """Store why a run cannot be answered, for the command that waits for it."""
        failure = msgspec.json.encode(Failure(code=error.code, message=error.message))
        self.state.write_now(lambda connection: rows.fail(connection, job, failure))

    def cancel(self, job: PendingJob) -> None:
        """Do nothing: a run that is over has no partitions, and none is ever to stop."""

    def sweep(self) -> None:
        """Remove runs that were given up, and files that no partition has."""
        rows.sweep(self.state, self.store, self.now)


class BulkRun(Run):
    """A partition that is answered here."""

    def __init__(self, job: PendingJob, work: BulkRuns) -> None:
        super().__init__(job)
        self._work = work

    def advance(self) -> bool:
        """Answer the rows of the partition, and keep them with their answers."""
        work = self._work
        row = work.state.read_now(lambda connection: rows.find_mine(connection, self.job))
        if row is None:
            raise LostRunError
        partition = read_partition(work.store, row.input_sha256)
        values: dict[str, Any] = msgspec.json.decode(row.asked)
        model_id = values.pop("model", None)
        with ExitStack() as closing:
            model = self._open(row, model_id, closing)
            answered = self._answer(model, values, partition.contexts)
        if answered is None:
            return True
        decisions = read_request({**values, "context": ""}).decisions
        sha256 = write_answers(work.store, with_answers(partition.rows, decisions, answered))
        if not work.state.write_now(lambda c: rows.finish(c, self.job, sha256)):
            raise LostRunError
        return False

    def close(self) -> None:
        """Do nothing: a run holds nothing between two steps."""

    def _open(self, row: Any, name: str | None, closing: ExitStack) -> HostedModel:
        """Open the model that answers the run: the same one for all of its partitions."""
        work, job = self._work, self.job
        model_id, sha256 = row.model_id, row.model_sha256
        if model_id is None:
            caller = Caller(job.account_id, None, "full", "worker")
            named = asyncio.run(work.models.find(caller, name or work.default))
            model_id, sha256 = work.state.write_now(
                lambda c: rows.fix_model(c, job.id, named.id, named.evaluation_key)
            )
        model = closing.enter_context(work.models.open(job.account_id, model_id))
        if model.evaluation_key != sha256:
            raise errors.ModelChangedError(
                f"The model {name or work.default} is another one than when the rows were begun; "
                "start the workers with one model, or answer the file anew with --restart."
            )
        return model

    def _answer(
        self, model: HostedModel, values: dict[str, Any], contexts: Sequence[Any]
    ) -> list[Answered] | None:
        """Return the answers; ``None`` when it is to stop before it has all."""
        answers = AnswerService(model.decide, model.queue, deadline_s=self._work.deadline_s)
        answered: list[Answered] = []
        for start in range(0, len(contexts), _AT_ONCE):
            if self.stopping.is_set():
                return None
            answered += answers.answer_many(values, contexts[start : start + _AT_ONCE])
        return answered
