"""Scoring an evaluation: rows in batches of like lengths, predictions durable as they come.

About once a second the scored rows become a file of predictions, and only when it is durable the
progress that names it is committed. So a row with a kept prediction is never scored again, whenever
the process dies: at most the rows scored since the last commit are lost. When it runs is
up to ``steelyard.jobs``; who may ask for an evaluation is in ``steelyard.evaluations.service``.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import msgspec
from sqlalchemy import Connection, Row, Table

from steelyard import errors
from steelyard.asking.window import RowResult, RowWindow
from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.evaluations import partitions
from steelyard.evaluations import predictions as frames
from steelyard.evaluations import store as rows
from steelyard.evaluations.measures.records import UnmeasurableError
from steelyard.evaluations.measuring import SUPERVISION, measure_file
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.partitions import RowShare
from steelyard.evaluations.prediction_columns import Prediction
from steelyard.evaluations.rows import ReadyRow, RowRenderer, timed_rows
from steelyard.evaluations.tables import evaluations
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import LostRunError, Run, TableWork
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.registry import HostedModel
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore

#: Name of this kind of job.
EVALUATION = "evaluation"
#: Rows that are put in order of length and scored together.
WINDOW_ROWS = 2048
#: Seconds between two commits of progress.
COMMIT_S = 1.0
#: The owner of rows that are scored for no account in particular.
_WORKER_ADDRESS = "worker"


@dataclass(eq=False, slots=True)
class EvaluationRuns(TableWork):
    """Evaluations as a kind of job."""

    name: ClassVar[str] = EVALUATION
    table: ClassVar[Table] = evaluations
    move = staticmethod(rows.EVALUATIONS.move)

    state: State
    store: FrameStore
    datasets: DatasetService
    models: EvaluatedModels
    _: KW_ONLY
    commit_s: float = COMMIT_S
    window_rows: int = WINDOW_ROWS
    now: Callable[[], float] = time.time

    def pending(self, connection: Connection) -> list[PendingJob]:
        """Return every evaluation that has not ended, or of a large one the parts that may be taken."""
        return partitions.pending(connection)

    def claim(self, connection: Connection, job: PendingJob) -> None:
        """Write that an evaluation runs, or a partition of it."""
        if job.partition is None:
            TableWork.claim(self, connection, job)
        else:
            partitions.claim(connection, job, self.now())

    def open(self, job: PendingJob) -> EvaluationRun:
        """Return the run of an evaluation, or of a partition of it."""
        return EvaluationRun(job, self)

    def share(self, job: PendingJob) -> RowShare:
        """Return the rows that a run is to score; ``LostRunError`` when it is no longer this runner's."""
        share = self.state.read_now(lambda connection: partitions.find_share(connection, job))
        if share is None:
            raise LostRunError
        return share

    def cancel(self, job: PendingJob) -> None:
        """End an evaluation that is to stop; of one with partitions, the last that is let go of."""
        if job.partition is None:
            TableWork.cancel(self, job)
            return

        def work(connection: Connection) -> None:
            if partitions.let_go(connection, job):
                rows.EVALUATIONS.move(
                    connection, job.id, "cancelled", at=self.now(), only_if=("cancelling",)
                )

        self.state.write_now(work)

    def sweep(self) -> None:
        """Remove files of predictions that no evaluation of a dataset that is there refers to."""
        rows.sweep_predictions(self.state, self.store)


@dataclass(frozen=True, slots=True)
class _Scoring:
    """The model of an evaluation, and the rows that it has not scored yet."""

    model: HostedModel
    renderer: RowRenderer
    left: Iterator[tuple[int, Any]]
    closing: ExitStack


class EvaluationRun(Run):
    """An evaluation that runs here."""

    def __init__(self, job: PendingJob, work: EvaluationRuns) -> None:
        super().__init__(job)
        self._work = work
        self._scoring: _Scoring | None = None

    def advance(self) -> bool:
        """Score a window of rows, or measure them when all are scored."""
        share = self._work.share(self.job)
        if share.done == share.rows:
            self.close()
            if self.job.partition is None:
                self._finish(share.row)
            else:
                self._keep(share)
            return False
        try:
            scoring = self._scoring = self._scoring or self._open(share)
            self._score(scoring, self._next_window(share, scoring))
        except BaseException:
            self.close()  # the rest is found anew
            raise
        return True

    def close(self) -> None:
        """Release the model."""
        scoring, self._scoring = self._scoring, None
        if scoring is not None:
            scoring.closing.close()

    def _open(self, share: RowShare) -> _Scoring:
        row = share.row
        with ExitStack() as closing:
            try:
                model = closing.enter_context(self._work.models.open(row.account_id, row.model_id))
            except errors.ModelUnavailableError as error:
                raise errors.ModelUnavailableError(
                    f"The worker has no model {row.model_label}; start it with the settings of "
                    "the server, and retry the evaluation."
                ) from error
            if model.evaluation_key != row.model_sha256:
                raise errors.ModelChangedError(
                    f"The model {row.model_label} is another one than when the evaluation was "
                    "asked for; start a new evaluation."
                )
            return _Scoring(model, RowRenderer(model.decide), self._left(share), closing.pop_all())

    def _left(self, share: RowShare) -> Iterator[tuple[int, Any]]:
        """Return the rows that are not scored yet, in the order of the dataset."""
        work, row = self._work, share.row
        caller = Caller(row.account_id, None, "full", _WORKER_ADDRESS)
        at = asyncio.run(
            work.datasets.dataset_at(caller, row.dataset_id, row.dataset_version, is_new_work=False)
        )
        done = frames.scored_rows(work.store, share.parts)
        mine = itertools.islice(work.datasets.evaluation_rows(at, share.first), share.rows)
        return (
            (place, labelled_row)
            for place, labelled_row in enumerate(mine, share.first)
            if place not in done
        )

    def _next_window(self, share: RowShare, scoring: _Scoring) -> list[ReadyRow]:
        taken = itertools.islice(scoring.left, self._work.window_rows)
        window = [scoring.renderer.render(labelled_row, place) for place, labelled_row in taken]
        if not window:
            raise errors.InternalError(
                f"{share.done} of {share.rows} rows were scored; retry the evaluation."
            )
        return window

    def _score(self, scoring: _Scoring, window: list[ReadyRow]) -> None:
        """Score rows, the longest first, and commit as they come.

        A full queue is met by waiting for a place in it. The engine is never left idle for a commit: it
        works on the rows that wait.
        """
        window.sort(key=lambda row: row.characters)
        model, renderer = scoring.model, scoring.renderer
        scored: list[Prediction] = []
        n_scored = 0
        committed_at = time.monotonic()
        for turn, at_once, is_timed in _turns(window, model):
            requests = RowWindow(turn, lambda row: model.queue.submit(row.request), at_once)
            try:
                while requests and not self.stopping.is_set():
                    for answer in requests.look():
                        latency_ms = _latency_ms(answer) if is_timed else None
                        scored += renderer.predictions(answer.row, answer.result(), latency_ms)
                        n_scored += 1
                    if time.monotonic() - committed_at >= self._work.commit_s:
                        self._commit(scored, n_scored)
                        scored, n_scored = [], 0
                        committed_at = time.monotonic()
            finally:
                requests.close()
                self._commit(scored, n_scored)
                scored, n_scored = [], 0

    def _commit(self, scored: Sequence[Prediction], n_rows: int) -> None:
        if n_rows == 0:
            return
        work = self._work
        sha256 = frames.write_predictions(work.store, scored)
        work.write(
            lambda connection: rows.add_part(
                connection, self.job, sha256=sha256, rows=n_rows, at=work.now()
            )
        )

    def _keep(self, share: RowShare) -> None:
        """Keep the predictions of a partition in one file, in the order of its rows."""
        work = self._work
        sha256 = frames.write_table(work.store, frames.merge(work.store, share.parts))
        work.write(lambda connection: partitions.finish(connection, self.job, sha256))

    def _finish(self, row: Row[Any]) -> None:
        """Compute the measures of the scored rows, and store them."""
        work = self._work
        split, parts = work.state.read_now(
            lambda connection: (
                partitions.finished(connection, self.job.id),
                rows.parts_of(connection, self.job.id),
            )
        )
        if split:
            predictions_sha256 = frames.join_files(work.store, split)
        else:
            merged = frames.merge(work.store, parts)
            predictions_sha256 = frames.write_table(work.store, merged)
        try:
            detail = measure_file(work.store, predictions_sha256, SUPERVISION[row.method])
        except UnmeasurableError as error:
            raise errors.NotMeasurableError(str(error)) from error
        detail_sha256 = work.store.put(msgspec.json.encode(detail), ".json")

        def end(connection: Connection) -> Callable[[], None] | None:
            is_ours = rows.finish_run(
                connection,
                self.job,
                at=work.now(),
                metrics=msgspec.json.encode(detail.metrics),
                decisions=detail.metrics.n,
                predictions_sha256=predictions_sha256,
                detail_sha256=detail_sha256,
            )
            if not is_ours:
                raise LostRunError
            if row.named is None:
                return None
            return work.models.use_in(connection, row.account_id, row.named)

        follow = work.state.write_now(end)
        if follow is not None:
            follow()


def _turns(
    window: list[ReadyRow], model: HostedModel
) -> Iterator[tuple[list[ReadyRow], int, bool]]:
    """Yield rows, how many of them are asked at once, and whether each has a time of its own.

    Rows of a model of this server share passes, whose times say nothing of one row's: so it is
    asked about a few of all lengths alone.
    """
    if not model.is_connected:
        alone = timed_rows(len(window))
        yield window[alone], 1, True
        del window[alone]
    yield window[::-1], model.queue.max_queue, model.is_connected


def _latency_ms(answer: RowResult[ReadyRow, list[ScoredDecision]]) -> float | None:
    """Return how long an answer took, retries included."""
    started_at = getattr(answer.future, "started_at", None)
    return None if started_at is None else (answer.ended_at - started_at) * 1e3
