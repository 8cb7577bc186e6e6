"""Running fine-tunes: one kind of work of the job runtime.

A fine-tune is trained by a process of its own in a folder of the home, where everything that it has
done is durable. This writes the folder, starts the process, tells how it goes, and stores what it
made; the fine-tune ends in one transaction with its charge and its model. Wherever a process dies,
the next takes the folder up as it is, or writes it anew.

Here: running one that is queued. Not here: what a fine-tune may do when
(``steelyard.families.fine_tunes``), nor what callers are told (``steelyard.services.fine_tune_jobs``).
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection, Row

from steelyard.errors import (
    DatasetDeletedError,
    InternalError,
    NotFoundError,
    NotMeasurableError,
    StorageUnavailableError,
    error_classes,
)
from steelyard.errors.base import SteelyardError
from steelyard.evaluation.gate import NEEDED
from steelyard.evaluation.records import UnmeasurableError
from steelyard.families.ancestry import learned_from
from steelyard.families.continuing import trained_version
from steelyard.families.draft import Change
from steelyard.families.fine_tunes import fail_job, finish_job, report_job, start_job, stop_job
from steelyard.families.line import Conditions, Job, Lines, adapter_of
from steelyard.jobs.work import HaltedError, Pending
from steelyard.services.caller import Caller
from steelyard.services.dataset_versions import DatasetAt
from steelyard.services.datasets import DatasetService
from steelyard.services.fine_tune_folders import write_folder
from steelyard.services.fine_tune_progress import (
    ProgressFile,
    Reports,
    Telling,
    fraction_of,
    tell_progress,
)
from steelyard.services.held_out_evaluations import HeldOutEvaluation, HeldOutEvaluations
from steelyard.services.job_files import FineTuneFiles
from steelyard.services.lines import LineKeeper
from steelyard.services.trainer_process import TrainerProcess
from steelyard.services.tuning_rows import TuningRows
from steelyard.storage.frames.artifacts import ArtifactStore
from steelyard.storage.frames.store import FrameStore, told_as_unavailable
from steelyard.storage.state import State
from steelyard.storage.state import fine_tunes as rows
from steelyard.training.fine_tune.durable import read_struct, write_struct
from steelyard.training.fine_tune.task import (
    ERROR,
    FAILED,
    MODEL,
    PROGRESS,
    RECORDS,
    RESULT,
    TASK,
    FineTuneFailure,
    FineTuneResult,
    Progress,
    TaskBase,
)
from steelyard.wire.fine_tuning import EventType, JobError

_log = logging.getLogger(__name__)

#: Name of this kind of job.
FINE_TUNE = "fine_tune"
#: Seconds of waiting for the trainer that one call of ``advance`` takes: each call is a record of
#: the job runtime.
SLICE_S = 20.0
#: Seconds between two looks at the trainer.
_LOOK_S = 0.1
#: Seconds between two writes of the progress.
_TELL_S = 1.0
#: Seconds that a stopped run has to end by itself.
_STOP_GRACE_S = 0.5
#: How often a generation is given to the queue, and a trainer that gets no further started, before
#: the fine-tune has failed.
_MAX_ATTEMPTS = 5
#: Seconds before a trainer that died is started again, for each time that it died in a row.
_RESTART_S = 0.5
_PHASES = ("lora", "features", "heads", "calibration", "scoring", "gate")
_DEATHS = "deaths.json"
_RECORDS_SUFFIX = ".parquet"
_WORKER_ADDRESS = "worker"


class TaskBases(Protocol):
    """Gives how a trainer loads a base model."""

    def __call__(self, name: str) -> TaskBase:
        """Give it for a base model's name; raise ``ModelUnavailableError`` where there is none."""
        ...


class _Deaths(msgspec.Struct, frozen=True, kw_only=True):
    """How often a trainer died without getting further than ``furthest``."""

    furthest: float
    count: int


class _LostRunError(Exception):
    """The fine-tune is no longer this process's to run."""


@dataclass(slots=True)
class _Run:
    """A fine-tune that runs here."""

    job: Job
    account_id: str
    generation: int
    folder: Path
    reports: Reports | None = None
    trainer: TrainerProcess | None = None
    furthest: float = 0.0
    told_at: float = 0.0
    told_phase: str | None = None
    unwritten: Progress | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    stop_asked_at: float | None = None


class FineTuneRuns:
    """Runs fine-tunes; one kind of work of the job runtime.

    Parameters
    ----------
    state : State
        Where fine-tunes are.
    keeper : LineKeeper
        Changes the lines of their accounts.
    tuning_rows : TuningRows
        Gives their rows.
    datasets : DatasetService
        Gives versions of datasets.
    artifacts : ArtifactStore
        Where the models go.
    records : FrameStore
        Where held-out records go, and nothing else.
    folder : Path
        A local directory for the folders of fine-tunes that run here.
    bases : callable
        Takes a base model's name and gives how a trainer loads it.
    threads : int, optional
        Threads of a trainer's scorer; 0 takes every core.
    needed : int, optional
        New evaluation decisions that the gate needs.
    slice_s : float, optional
        Seconds of waiting that one call of ``advance`` takes.
    held_out : HeldOutEvaluations, optional
        Makes an evaluation of what was measured; left out, none is made.
    now : callable, optional
        Unix seconds.
    """

    name = FINE_TUNE

    def __init__(
        self,
        state: State,
        keeper: LineKeeper,
        tuning_rows: TuningRows,
        datasets: DatasetService,
        artifacts: ArtifactStore,
        records: FrameStore,
        *,
        folder: Path,
        bases: TaskBases,
        threads: int = 0,
        needed: int = NEEDED,
        slice_s: float = SLICE_S,
        held_out: HeldOutEvaluations | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._keeper = keeper
        self._rows = tuning_rows
        self._datasets = datasets
        self._artifacts = artifacts
        self._records = records
        self._folder = folder
        self._files = FineTuneFiles(state, artifacts, records, folder)
        self._bases = bases
        self._threads = threads
        self._needed = needed
        self._slice_s = slice_s
        self._held_out = held_out
        self._now = now
        self._runs: dict[str, _Run] = {}
        self._halting = threading.Event()

    def pending(self) -> list[Pending]:
        """Give every fine-tune that has not ended, the oldest first."""
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
        """Take a fine-tune up."""
        row = self._find(job_id)
        if row is None or row.generation != generation:
            return False
        taken = False

        def take(connection: Connection) -> None:
            nonlocal taken
            runner = self._state.instance
            found = rows.find_fine_tune(connection, job_id)
            taken = (
                found is not None
                and not self._is_elsewhere(connection, found.runner)
                and rows.begin_run(connection, job_id, generation, runner) is not None
            )

        lines = self._apply(row.account_id, start_job, job_id, also=take)
        if not taken:
            return False
        self._runs[job_id] = _Run(
            job=lines.jobs[job_id],
            account_id=row.account_id,
            generation=generation,
            folder=self._folder / job_id,
        )
        # Whoever stopped it before it was among the runs found none to tell.
        row = self._find(job_id)
        if row is None or (row.status, row.generation) != ("running", generation):
            self._drop(self._runs[job_id])
            return False
        return True

    def advance(self, job_id: str, generation: int) -> bool:
        """Train for a while; gives whether there is more to do."""
        run = self._run(job_id, generation)
        if run is None:
            return False
        try:
            with told_as_unavailable():
                is_done = self._train(run)
        except _LostRunError:
            self._drop(run)
            return False
        except BaseException:
            run.reports = None  # what of it was told is read off the state anew
            raise
        if run.stopping.is_set():
            self._end_stopped(run)
            return False
        return not is_done

    def finish(self, job_id: str, generation: int) -> None:
        """Store what a fine-tune made, and end it."""
        run = self._run(job_id, generation)
        if run is None:
            return
        # Not there when the process that trained it ran on another machine.
        while not (run.folder / RESULT).exists():
            if not self.advance(job_id, generation):
                break
        result = read_struct(run.folder / RESULT, FineTuneResult)
        if result is None or self._runs.get(job_id) is not run:
            return
        artifact_sha256 = None
        with told_as_unavailable():
            if result.gate.passed:
                artifact_sha256 = self._artifacts.put(run.folder / MODEL)
            held_out = self._evaluate(run, result)
            with self._records.draft() as draft:
                shutil.copyfile(run.folder / RECORDS, draft)
                records_sha256, _ = self._records.adopt(draft, _RECORDS_SUFFIX)

        ended: Lines | None = None

        def end(lines: Lines, conditions: Conditions) -> Change:
            nonlocal ended
            reason = " ".join(result.sentences) or None
            change = finish_job(
                lines, job_id, result.gate, result.heldout, conditions, reason=reason
            )
            ended = change.lines
            return change

        def keep(connection: Connection) -> None:
            is_ours = rows.set_results(
                connection,
                job_id,
                generation,
                self._state.instance,
                artifact_sha256=artifact_sha256,
                records_sha256=records_sha256,
                curve=msgspec.json.encode(result.curve),
            )
            if not is_ours or ended is None:
                raise _LostRunError
            if held_out is not None and ended.jobs[job_id].status == "succeeded":
                held_out.insert(connection, ended.models.get(adapter_of(job_id)), self._now())

        try:
            self._keeper.apply_now(run.account_id, end, also=keep)
        except _LostRunError:
            self._drop(run)
            return
        self._drop(run)
        self._files.remove(job_id)

    def fail(self, job_id: str, generation: int, error: BaseException) -> None:
        """Note why a fine-tune cannot be done; nothing is charged."""
        run = self._runs.get(job_id)
        if run is not None:
            self._drop(run)
        row = self._find(job_id)
        if row is None or row.generation != generation:
            return
        told = _tell(error)
        if told.code == InternalError.code:
            _log.error("Fine-tune %s failed.", job_id, exc_info=error)
        self._keeper.apply_now(
            row.account_id, lambda lines, conditions: fail_job(lines, job_id, told, conditions)
        )
        self._files.remove(job_id)

    def stop(self, job_id: str) -> None:
        """Stop a fine-tune: its trainer is killed at once."""
        run = self._runs.get(job_id)
        if run is not None:
            if run.stop_asked_at is None:
                run.stop_asked_at = time.monotonic()
            run.stopping.set()
            if run.trainer is not None:
                run.trainer.kill()
            if time.monotonic() - run.stop_asked_at < _STOP_GRACE_S:
                return
        elif self._runs_elsewhere(job_id):
            return
        self._cancel(job_id)

    def give_again(self, job: Pending) -> None:
        """Count another attempt of a generation that ended without a result."""
        if job.attempt >= _MAX_ATTEMPTS:
            lost = InternalError(
                f"The fine-tune ended {_MAX_ATTEMPTS} times without a result; look at the "
                "worker's log, and start it again."
            )
            self.fail(job.id, job.generation, lost)
            return
        self._state.write_now(
            lambda connection: rows.set_attempt(connection, job.id, job.generation, job.attempt + 1)
        )

    def sweep(self) -> None:
        """Remove folders, models and records that nothing refers to any more."""
        self._files.sweep(running=self._runs)

    def halt(self) -> None:
        """Stop what runs here; it stays to be taken up by another process."""
        self._halting.set()
        for run in list(self._runs.values()):
            run.stopping.set()
            if run.trainer is not None:
                run.trainer.kill()

    def _run(self, job_id: str, generation: int) -> _Run | None:
        """Give what runs here, taken up where another process left it."""
        if self._halting.is_set():
            raise HaltedError
        run = self._runs.get(job_id)
        if run is not None and run.generation == generation:
            return run
        return self._runs[job_id] if self.begin(job_id, generation) else None

    def _train(self, run: _Run) -> bool:
        """Let the trainer work for a while; gives whether it has ended with a result."""
        if not (run.folder / TASK).exists():
            self._write_folder(run)
        reports = run.reports = run.reports or self._open_reports(run)
        self._tell(run, reports.telling.count_tokens(
            run.job.split.trained_tokens, run.job.split.train_rows
        ))  # fmt: skip
        give_back_at = time.monotonic() + self._slice_s
        while not run.stopping.is_set():
            if run.trainer is None:
                if (run.folder / RESULT).exists():
                    self._report(run, reports)
                    return True
                run.trainer = TrainerProcess(run.folder)
                if run.stopping.is_set():  # asked to stop before the trainer was there to be killed
                    run.trainer.kill()
            run.stopping.wait(_LOOK_S)
            status = run.trainer.status
            self._report(run, reports)
            if status is not None:
                run.trainer.close()
                run.trainer = None
                if not run.stopping.is_set():
                    self._judge_end(run, status)
            elif time.monotonic() >= give_back_at:
                return False
        return False

    def _judge_end(self, run: _Run, status: int) -> None:
        """Look at how a trainer ended: raise its failure, or let it be started again."""
        if status == 0 and (run.folder / RESULT).exists():
            return
        if status == FAILED:
            told = read_struct(run.folder / ERROR, FineTuneFailure)
            if told is None:
                raise StorageUnavailableError(
                    "The fine-tune's files cannot be written; look at the disk of the worker."
                )
            raise error_classes().get(told.code, InternalError)(told.message)
        deaths = read_struct(run.folder / _DEATHS, _Deaths)
        count = 1 if deaths is None or run.furthest > deaths.furthest else deaths.count + 1
        _log.warning(
            "The trainer of %s ended with status %d; it died %d times here.",
            run.job.id,
            status,
            count,
        )
        if count >= _MAX_ATTEMPTS:
            raise InternalError(
                f"The trainer ended with status {status} at the same place {count} times; look at "
                "the worker's log, give it more memory if it was killed, and start the fine-tune "
                "again."
            )
        write_struct(run.folder / _DEATHS, _Deaths(furthest=run.furthest, count=count))
        run.stopping.wait(_RESTART_S * count)

    def _open_reports(self, run: _Run) -> Reports:
        """Give the trainer's reports from the first on, and what the state says was told of them."""
        job = run.job
        events = self._state.read_now(lambda connection: rows.events_of(connection, job.id))
        return Reports(
            file=ProgressFile(run.folder / PROGRESS),
            telling=Telling(events, with_lora=job.hyperparameters.lora_rank > 0),
        )

    def _report(self, run: _Run, reports: Reports) -> None:
        """Tell what the trainer reported since the last look."""
        for report in reports.file.read():
            run.unwritten = report
            run.furthest = max(run.furthest, _place_of(report))
            self._tell(run, reports.telling.events_of(report))
        report_ = run.unwritten
        if report_ is None:
            return
        now = time.monotonic()
        if report_.phase == run.told_phase and now - run.told_at < _TELL_S:
            return
        run.unwritten, run.told_phase, run.told_at = None, report_.phase, now
        progress = msgspec.json.encode(tell_progress(report_))
        is_ours = self._state.write_now(
            lambda connection: rows.set_progress(
                connection, run.job.id, run.generation, self._state.instance, progress
            )
        )
        if not is_ours:
            raise _LostRunError

    def _tell(self, run: _Run, events: list[tuple[EventType, str]]) -> None:
        for type_, message in events:

            def report(
                lines: Lines,
                conditions: Conditions,
                type_: EventType = type_,
                message: str = message,
            ) -> Change:
                return report_job(lines, run.job.id, type_, message, conditions)

            self._keeper.apply_now(run.account_id, report)

    def _write_folder(self, run: _Run) -> None:
        job = run.job
        stored = self._keeper.read_now(run.account_id)
        before = trained_version(stored.lines, stored.lines.families[job.family])
        at = self._dataset_at(run, job.dataset_version)
        trained = None if before is None else self._dataset_at(run, before)
        parent = None
        if job.parent is not None:
            parent = self._artifacts.fetch(stored.artifacts[job.parent])
        learned = self._still_there(run, learned_from(stored.lines, job.parent))
        write_folder(
            run.folder,
            job,
            self._rows.select(at, trained, seed=job.hyperparameters.seed, learned=learned),
            base=self._bases(job.base),
            parent=parent,
            needed=self._needed,
            threads=self._threads,
            stopping=run.stopping,
        )

    def _evaluate(self, run: _Run, result: FineTuneResult) -> HeldOutEvaluation | None:
        if self._held_out is None:
            return None
        at = self._dataset_at(run, run.job.dataset_version)
        return self._held_out.make(
            run.job, run.account_id, at, result.artifact_sha256, run.folder / RECORDS
        )

    def _still_there(self, run: _Run, versions: Iterable[tuple[str, int]]) -> list[DatasetAt]:
        """Give versions of datasets, but for those that are deleted."""
        found = []
        for dataset_id, version in versions:
            with suppress(NotFoundError, DatasetDeletedError):
                found.append(self._dataset_at(run, version, dataset_id))
        return found

    def _dataset_at(self, run: _Run, version: int, dataset_id: str | None = None) -> DatasetAt:
        caller = Caller(run.account_id, None, "full", _WORKER_ADDRESS)
        wanted = run.job.dataset_id if dataset_id is None else dataset_id
        return asyncio.run(self._datasets.dataset_at(caller, wanted, version, is_new_work=False))

    def _end_stopped(self, run: _Run) -> None:
        self._drop(run)
        if self._halting.is_set():
            raise HaltedError
        self._cancel(run.job.id)

    def _cancel(self, job_id: str) -> None:
        row = self._find(job_id)
        if row is None or row.status != "cancelling":
            return
        self._apply(row.account_id, stop_job, job_id)
        self._files.remove(job_id)

    def _apply(
        self,
        account_id: str,
        command: Callable[[Lines, str, Conditions], Change],
        job_id: str,
        *,
        also: Callable[[Connection], None] | None = None,
    ) -> Lines:
        return self._keeper.apply_now(
            account_id, lambda lines, conditions: command(lines, job_id, conditions), also=also
        )

    def _drop(self, run: _Run) -> None:
        """Forget a run, and end its trainer."""
        if run.trainer is not None:
            run.trainer.kill()
        if self._runs.get(run.job.id) is run:
            del self._runs[run.job.id]

    def _find(self, job_id: str) -> Row[Any] | None:
        return self._state.read_now(lambda connection: rows.find_fine_tune(connection, job_id))

    def _runs_elsewhere(self, job_id: str) -> bool:
        def work(connection: Connection) -> bool:
            row = rows.find_fine_tune(connection, job_id)
            return row is not None and self._is_elsewhere(connection, row.runner)

        return self._state.write_now(work)

    def _is_elsewhere(self, connection: Connection, runner: str | None) -> bool:
        if runner is None or runner == self._state.instance:
            return False
        return self._state.is_alive(connection, runner)


def _place_of(report: Progress) -> float:
    """Give how far a trainer is, as a number that grows."""
    return _PHASES.index(report.phase) + fraction_of(report)


def _tell(error: BaseException) -> JobError:
    if isinstance(error, SteelyardError):
        return JobError(code=error.code, message=error.message)
    if isinstance(error, UnmeasurableError):
        return JobError(code=NotMeasurableError.code, message=str(error))
    return JobError(
        code=InternalError.code, message="The fine-tune failed here, and the log says why."
    )
