"""Scoring an evaluation: rows in batches of like lengths, predictions durable as they come.

About once a second what was scored becomes a file of predictions, and only when it is durable the
progress that names it is committed. So a row with a kept prediction is never scored again, whenever
the process dies: what is lost is at most what was scored since the last commit. The job runtime
(``steelyard.jobs``) says when to run; who may ask for an evaluation is
``steelyard.services.evaluations``.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard.errors import (
    EngineUnavailableError,
    InternalError,
    ModelUnavailableError,
    NotMeasurableError,
    SteelyardError,
)
from steelyard.errors.families import (
    ModelChangedError,
)
from steelyard.evaluation.records import Supervision, UnmeasurableError
from steelyard.evaluation.summary import evaluation_detail
from steelyard.jobs.work import HaltedError, Pending
from steelyard.scoring.protocol import ScoredDecision
from steelyard.services.caller import Caller
from steelyard.services.evaluated_models import EvaluatedModels
from steelyard.services.evaluation_rows import (
    EvaluatedDatasets,
    FrozenDataset,
    ReadyRow,
    RowRenderer,
    slices_of,
)
from steelyard.services.job_files import sweep_predictions
from steelyard.services.lines import Applied
from steelyard.services.models import HostedModel
from steelyard.storage.frames import predictions as frames
from steelyard.storage.frames.predictions import Prediction
from steelyard.storage.frames.store import FrameStore
from steelyard.storage.state import State
from steelyard.storage.state import evaluations as rows
from steelyard.wire.evaluations import EvaluationError

_log = logging.getLogger(__name__)

#: Name of this kind of job.
EVALUATION = "evaluation"
#: Rows that are put in order of length and scored together.
WINDOW_ROWS = 2048
#: Seconds between two commits of progress.
COMMIT_S = 1.0
#: Seconds between two looks whether to stop while the engine works.
_LOOK_S = 0.1
#: Seconds that a run has to keep what it scored before it counts as stopped.
_STOP_GRACE_S = 0.5
#: How often a generation is given to the queue before it has failed.
_MAX_ATTEMPTS = 5
#: What was scored for nobody in particular.
_WORKER_ADDRESS = "worker"

SUPERVISION: dict[str, Supervision] = {"sft": "targets", "reward": "rewards"}

_Finished = tuple[ReadyRow, "Future[list[ScoredDecision]]"]


class _LostRunError(Exception):
    """The evaluation is no longer this run's: it was retried, or another process has it."""


@dataclass(slots=True)
class _Run:
    """An evaluation that runs here."""

    row: Row[Any]
    model: HostedModel
    renderer: RowRenderer
    left: Iterator[tuple[int, Any]]
    closing: ExitStack
    stopping: threading.Event = field(default_factory=threading.Event)
    stop_asked_at: float | None = None
    is_stopped: bool = False


class EvaluationRuns:
    """Scores evaluations; one kind of work of the job runtime.

    Parameters
    ----------
    state : State
        Where evaluations are.
    store : FrameStore
        Where their predictions go.
    datasets : EvaluatedDatasets
        Gives rows.
    models : EvaluatedModels
        Who answers.
    commit_s : float, optional
        Seconds between two commits of progress.
    window_rows : int, optional
        Rows that are put in order of length and scored together.
    now : callable, optional
        Unix seconds.
    """

    name = EVALUATION

    def __init__(
        self,
        state: State,
        store: FrameStore,
        datasets: EvaluatedDatasets,
        models: EvaluatedModels,
        *,
        commit_s: float = COMMIT_S,
        window_rows: int = WINDOW_ROWS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._store = store
        self._datasets = datasets
        self._models = models
        self._commit_s = commit_s
        self._window_rows = window_rows
        self._now = now
        self._runs: dict[str, _Run] = {}
        self._halting = threading.Event()

    def pending(self) -> list[Pending]:
        """Give every evaluation that has not ended, the oldest first."""
        return [
            Pending(
                id=row.id,
                account_id=row.account_id,
                generation=row.generation,
                attempt=row.attempt,
                is_cancelling=row.status == "cancelling",
            )
            for row in self._state.read_now(rows.unfinished)
        ]

    def begin(self, job_id: str, generation: int) -> bool:
        """Take an evaluation up: its rows that are not scored yet, in the order of the dataset."""
        row = self._take(job_id, generation)
        if row is None:
            return False
        self._drop(job_id)
        self._runs[job_id] = self._open(row)
        # Whoever stopped it while the model was loaded found no run here to tell.
        if not self._is_running(job_id, generation):
            self._drop(job_id)
            return False
        return True

    def advance(self, job_id: str, generation: int) -> bool:
        """Score a window of rows."""
        run = self._run(job_id, generation)
        if run is None:
            return False
        try:
            window = self._next_window(run)
            is_last = len(window) < self._window_rows
            if window and not run.stopping.is_set():
                self._score(run, window)
        except _LostRunError:
            self._drop(job_id)
            return False
        except BaseException:
            self._drop(job_id)  # what is left is found anew
            raise
        if run.stopping.is_set():
            self._end_stopped(run)
        return not is_last and not run.is_stopped

    def finish(self, job_id: str, generation: int) -> None:
        """Measure what was scored, and keep it."""
        self._drop(job_id)
        # The process that scored it may be gone; only who holds it may end it.
        row = self._take(job_id, generation)
        if row is None:
            return
        parts = self._state.read_now(lambda connection: rows.parts_of(connection, job_id))
        table = frames.merge(self._store, parts)
        n_rows = row.completed_rows
        if n_rows != row.evaluation_rows:
            raise InternalError(
                f"{n_rows} of {row.evaluation_rows} rows were scored; retry the evaluation."
            )
        records = frames.records_of(table, SUPERVISION[row.method])
        detail = evaluation_detail(records, slices=slices_of(table))
        predictions_sha256 = frames.write_table(self._store, table)
        detail_sha256 = self._store.put(msgspec.json.encode(detail), ".json")

        def work(connection: Connection) -> Applied | None:
            is_ours = rows.finish_run(
                connection,
                job_id,
                generation,
                self._state.instance,
                at=self._now(),
                metrics=msgspec.json.encode(detail.metrics),
                decisions=len(records),
                predictions_sha256=predictions_sha256,
                detail_sha256=detail_sha256,
            )
            if not is_ours or row.named is None:
                return None
            return self._models.use_in(connection, row.account_id, row.named)

        used = self._state.write_now(work)
        if used is not None:
            self._models.follow(used)

    def fail(self, job_id: str, generation: int, error: BaseException) -> None:
        """Note why an evaluation cannot be done; its predictions stay."""
        self._drop(job_id)
        told = _tell(error)
        if told.code == InternalError.code:
            _log.error("Evaluation %s failed.", job_id, exc_info=error)
        self._state.write_now(
            lambda connection: rows.set_status(
                connection,
                job_id,
                "failed",
                at=self._now(),
                only_if=("queued", "running"),
                generation=generation,
                error=msgspec.json.encode(told),
            )
        )
        self._cancel(job_id)

    def stop(self, job_id: str) -> None:
        """Stop an evaluation: a run here keeps what it scored first, within half a second."""
        run = self._runs.get(job_id)
        if run is not None:
            if run.stop_asked_at is None:
                run.stop_asked_at = time.monotonic()
            run.stopping.set()
            if time.monotonic() - run.stop_asked_at < _STOP_GRACE_S:
                return
        elif self._runs_elsewhere(job_id):
            return
        self._cancel(job_id)

    def give_again(self, job: Pending) -> None:
        """Count another attempt of a generation that ended without a result."""
        if job.attempt >= _MAX_ATTEMPTS:
            lost = InternalError(
                f"The evaluation ended {_MAX_ATTEMPTS} times without a result; look at the "
                "worker's log, and retry it."
            )
            self.fail(job.id, job.generation, lost)
            return
        self._state.write_now(
            lambda connection: rows.set_attempt(connection, job.id, job.generation, job.attempt + 1)
        )

    def sweep(self) -> None:
        """Remove files of predictions that no evaluation of a dataset that is there refers to."""
        sweep_predictions(self._state, self._store)

    def halt(self) -> None:
        """Stop what runs here; it stays to be taken up by another process."""
        self._halting.set()
        for run in list(self._runs.values()):
            run.stopping.set()

    def _take(self, job_id: str, generation: int) -> Row[Any] | None:
        """Hold an evaluation that waits or runs; nothing when it is over, or was retried."""
        return self._state.write_now(
            functools.partial(
                rows.begin_run,
                evaluation_id=job_id,
                generation=generation,
                runner=self._state.instance,
                at=self._now(),
            )
        )

    def _is_running(self, job_id: str, generation: int) -> bool:
        row = self._state.read_now(lambda connection: rows.find_evaluation(connection, job_id))
        return row is not None and (row.status, row.generation) == ("running", generation)

    def _run(self, job_id: str, generation: int) -> _Run | None:
        """Give what runs here, taken up again where a part of it failed."""
        if self._halting.is_set():
            raise HaltedError
        run = self._runs.get(job_id)
        if run is not None and run.row.generation == generation:
            return run
        return self._runs[job_id] if self.begin(job_id, generation) else None

    def _drop(self, job_id: str) -> None:
        """Let go of what an evaluation that no longer runs here held."""
        run = self._runs.pop(job_id, None)
        if run is not None:
            run.closing.close()

    def _open(self, row: Row[Any]) -> _Run:
        with ExitStack() as closing:
            try:
                model = closing.enter_context(self._models.open(row.account_id, row.model_id))
            except ModelUnavailableError as error:
                raise ModelUnavailableError(
                    f"The worker has no model {row.model_label}; start it with the settings of "
                    "the server, and retry the evaluation."
                ) from error
            return self._read(row, model, closing)

    def _read(self, row: Row[Any], model: HostedModel, closing: ExitStack) -> _Run:
        """Make a run of an evaluation; it closes what was opened for it."""
        if model.evaluation_key != row.model_sha256:
            raise ModelChangedError(
                f"The model {row.model_label} is another one than when the evaluation was asked "
                "for; start a new evaluation."
            )
        caller = Caller(row.account_id, None, "full", _WORKER_ADDRESS)
        at: FrozenDataset = asyncio.run(
            self._datasets.dataset_at(
                caller, row.dataset_id, row.dataset_version, is_new_work=False
            )
        )
        parts = self._state.read_now(lambda connection: rows.parts_of(connection, row.id))
        done = frames.scored_rows(self._store, parts)
        left = (
            (place, one)
            for place, one in enumerate(self._datasets.evaluation_rows(at))
            if place not in done
        )
        return _Run(row, model, RowRenderer(model.decide), left, closing.pop_all())

    def _next_window(self, run: _Run) -> list[ReadyRow]:
        taken = itertools.islice(run.left, self._window_rows)
        return [run.renderer.render(row, place) for place, row in taken]

    def _score(self, run: _Run, window: list[ReadyRow]) -> None:
        """Score rows, the longest first, and commit as they come.

        A full queue is met by waiting for a place in it. The engine is never left idle for a
        commit: it works on what waits.
        """
        window.sort(key=lambda row: row.characters)
        finished: queue.SimpleQueue[_Finished] = queue.SimpleQueue()
        waiting: set[Future[list[ScoredDecision]]] = set()
        scored: list[Prediction] = []
        n_scored = 0
        committed_at = time.monotonic()
        try:
            while (window or waiting) and not run.stopping.is_set():
                self._fill(run, window, waiting, finished)
                for row, future in _take(finished):
                    waiting.discard(future)
                    scored += run.renderer.predictions(row, future.result())
                    n_scored += 1
                if time.monotonic() - committed_at >= self._commit_s:
                    self._commit(run, scored, n_scored)
                    scored, n_scored = [], 0
                    committed_at = time.monotonic()
        finally:
            for future in waiting:
                future.cancel()
            self._commit(run, scored, n_scored)

    def _fill(
        self,
        run: _Run,
        window: list[ReadyRow],
        waiting: set[Future[list[ScoredDecision]]],
        finished: queue.SimpleQueue[_Finished],
    ) -> None:
        while window and len(waiting) < run.model.queue.max_queue:
            row = window[-1]
            try:
                future = run.model.queue.submit(row.request)
            except EngineUnavailableError:
                if not waiting:
                    raise
                return
            window.pop()
            waiting.add(future)
            future.add_done_callback(functools.partial(_put, finished, row))

    def _commit(self, run: _Run, scored: Sequence[Prediction], n_rows: int) -> None:
        if n_rows == 0:
            return
        sha256 = frames.write_predictions(self._store, scored)
        is_ours = self._state.write_now(
            functools.partial(
                rows.add_part,
                evaluation_id=run.row.id,
                generation=run.row.generation,
                runner=self._state.instance,
                sha256=sha256,
                rows=n_rows,
                at=self._now(),
            )
        )
        if not is_ours:
            raise _LostRunError

    def _end_stopped(self, run: _Run) -> None:
        run.is_stopped = True
        if self._halting.is_set():
            raise HaltedError
        self._drop(run.row.id)
        self._cancel(run.row.id)

    def _cancel(self, job_id: str) -> None:
        self._state.write_now(
            lambda connection: rows.set_status(
                connection, job_id, "cancelled", at=self._now(), only_if=("cancelling",)
            )
        )

    def _runs_elsewhere(self, job_id: str) -> bool:
        def work(connection: Connection) -> bool:
            row = rows.find_evaluation(connection, job_id)
            if row is None or row.runner in {None, self._state.instance}:
                return False
            return self._state.is_alive(connection, row.runner)

        return self._state.write_now(work)


def _put(
    finished: queue.SimpleQueue[_Finished], row: ReadyRow, future: Future[list[ScoredDecision]]
) -> None:
    if not future.cancelled():
        finished.put((row, future))


def _take(finished: queue.SimpleQueue[_Finished]) -> Iterator[_Finished]:
    """Give what has finished, waiting a moment for the first."""
    try:
        yield finished.get(timeout=_LOOK_S)
        while True:
            yield finished.get_nowait()
    except queue.Empty:
        return


def _tell(error: BaseException) -> EvaluationError:
    if isinstance(error, SteelyardError):
        return EvaluationError(code=error.code, message=error.message)
    if isinstance(error, UnmeasurableError):
        return EvaluationError(code=NotMeasurableError.code, message=str(error))
    return EvaluationError(
        code=InternalError.code, message="The evaluation failed here, and the log says why."
    )
