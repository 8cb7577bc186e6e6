"""Running fine-tunes: one kind of job.

A fine-tune is trained by a process of its own in a folder of the home, where everything that it has
done is durable. This writes the folder, starts the process, reports its progress, and stores its model;
the fine-tune ends in one transaction with its charge and its model. Wherever a process dies, the next
takes the folder up as it is, or writes it anew.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import UnsetType
from sqlalchemy import Connection

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.frames.vectors import scorer_of
from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt
from steelyard.datasets.versions import Manifest
from steelyard.evaluations.measures.gate_rules import NEEDED
from steelyard.families.fine_tune_store import events_of, set_progress
from steelyard.families.fine_tune_wire import EventType, JobError
from steelyard.families.fine_tuning.asking import Asking
from steelyard.families.fine_tuning.files import FineTuneFiles
from steelyard.families.fine_tuning.folders import write_folder
from steelyard.families.fine_tuning.held_out import HeldOutEvaluations, insert_held_out
from steelyard.families.fine_tuning.process import TrainerProcess
from steelyard.families.fine_tuning.progress import (
    ProgressFile,
    Telling,
    fraction_of,
    progress_to_wire,
)
from steelyard.families.fine_tuning.rows import TuningRows
from steelyard.families.fine_tuning.vectors import store_read, write_stored
from steelyard.families.lineage.continuing import trained_version
from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.fine_tunes import (
    fail_job,
    finish_job,
    model_of,
    report_job,
    start_job,
    stop_job,
)
from steelyard.families.lineage.lineage import (
    Conditions,
    FineTune,
    Lineage,
    adapter_of,
    base_under,
    is_only_compared,
    learned_from,
)
from steelyard.families.lineage_store import Applied, Command, LineageStore
from steelyard.families.tables import fine_tunes
from steelyard.ids import new_id
from steelyard.jobs.store import PendingJob, set_of_run, set_runner, unfinished
from steelyard.jobs.work import LostRunError, Run, Work
from steelyard.serving.registry import HostedModel
from steelyard.storage import State
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.frame_store import FrameStore, raised_as_unavailable
from steelyard.trainer.durable import read_struct, write_struct
from steelyard.trainer.task import (
    ANSWERS,
    ERROR,
    FAILED,
    MODEL,
    PROGRESS,
    RECORDS,
    RESULT,
    TASK,
    FineTuneFailure,
    FineTuneResult,
    FineTuneTask,
    Progress,
    TaskBase,
)
from steelyard.wire.training import HeadsKind

_log = logging.getLogger(__name__)

#: Name of this kind of job.
FINE_TUNE = "fine_tune"
#: Seconds of training after which ``advance`` returns: a failure after them counts as a first one.
SLICE_S = 20.0
#: Seconds between two looks at the trainer.
_LOOK_S = 0.1
#: Seconds between two writes of the progress.
_TELL_S = 1.0
#: How often a trainer that gets no further is started before the fine-tune has failed.
_MAX_DEATHS = 5
#: Seconds before a trainer that died is started again, for each time that it died in a row.
_RESTART_S = 0.5
_PHASES = ("lora", "features", "heads", "calibration", "scoring", "gate")
_DEATHS = "deaths.json"
_RECORDS_SUFFIX = ".parquet"
_WORKER_ADDRESS = "worker"


class _Deaths(msgspec.Struct, frozen=True, kw_only=True):
    """How often a trainer died without getting further than ``furthest``."""

    furthest: float
    count: int


@dataclass(eq=False)
class FineTuneRuns(Work):
    """Fine-tunes as a kind of job."""

    name: ClassVar[str] = FINE_TUNE

    state: State
    lineages: LineageStore
    tuning_rows: TuningRows
    datasets: DatasetService
    artifacts: ArtifactStore
    records: FrameStore
    _: KW_ONLY
    folder: Path
    bases: Callable[[str], TaskBase]
    threads: int = 0
    needed: int = NEEDED
    find_base: Callable[[str], HostedModel | None] = lambda _: None
    reader_for: Callable[[HeadsKind | UnsetType], Path | None] = lambda _: None
    slice_s: float = SLICE_S
    held_out: HeldOutEvaluations | None = None
    dataset_files: FrameStore | None = None
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.files = FineTuneFiles(self.state, self.artifacts, self.records, self.folder)

    def pending(self, connection: Connection) -> list[PendingJob]:
        """Return every fine-tune that has not ended, the oldest first."""
        return unfinished(connection, fine_tunes)

    def claim(self, connection: Connection, job: PendingJob) -> None:
        """Write that a fine-tune runs."""
        set_runner(connection, fine_tunes, job)
        self.lineages.apply_in(
            connection, job.account_id, lambda lineage, now: start_job(lineage, job.id, now)
        )

    def open(self, job: PendingJob) -> FineTuneRun:
        """Return the run of a fine-tune."""
        return FineTuneRun(job, self)

    def fail(self, job: PendingJob, error: errors.SteelyardError) -> None:
        """Note why a fine-tune cannot be done; nothing is charged."""
        job_error = JobError(code=error.code, message=error.message)
        self._end(job, lambda lineage, now: fail_job(lineage, job.id, job_error, now))

    def cancel(self, job: PendingJob) -> None:
        """End a fine-tune that is to stop; nothing is charged."""
        self._end(job, lambda lineage, now: stop_job(lineage, job.id, now))

    def sweep(self) -> None:
        """Remove folders, models and records that nothing refers to any more."""
        self.files.sweep()

    def _end(self, job: PendingJob, command: Command) -> None:
        self.lineages.apply_now(job.account_id, command)
        self.files.remove(job.id)


class FineTuneRun(Run):
    """A fine-tune that runs here."""

    def __init__(self, job: PendingJob, work: FineTuneRuns) -> None:
        super().__init__(job)
        self._work = work
        self._folder = work.folder / job.id
        self._trainer: TrainerProcess | None = None
        self._asking: Asking | None = None
        #: The trainer's reports and the published progress, as far as was read.
        self._reports: tuple[ProgressFile, Telling] | None = None
        self._furthest = 0.0
        self._unwritten: Progress | None = None
        self._told_at = 0.0
        self._told_phase: str | None = None

    def advance(self) -> bool:
        """Train for a while, or end the fine-tune when its trainer has."""
        job = self._find()
        try:
            with raised_as_unavailable():
                result = self._train(job)
                if result is not None:
                    self._finish(job, result)
        except BaseException:
            self._reports = None  # the published progress is read from the state anew
            raise
        return result is None

    def stop(self) -> None:
        """Kill the trainer."""
        super().stop()
        self.close()

    def close(self) -> None:
        """End the trainer, if there is one."""
        trainer, asking = self._trainer, self._asking
        if trainer is not None:
            trainer.kill()
        if asking is not None:
            asking.close()

    def _find(self) -> FineTune:
        job = self._work.lineages.read_now(self.job.account_id).lineage.jobs[self.job.id]
        if job.status != "running":
            raise LostRunError
        return job

    def _train(self, job: FineTune) -> FineTuneResult | None:
        """Watch the trainer for a while; return its result once it has ended."""
        if not (self._folder / TASK).exists():
            self._write_folder(job)
        file, telling = self._reports = self._reports or self._open_reports(job)
        split = job.split
        self._tell(telling.count_tokens(split.trained_tokens, split.train_rows))
        return_at = time.monotonic() + self._work.slice_s
        if not self._ask_base(return_at, telling):
            return None
        while not self.stopping.is_set() and time.monotonic() < return_at:
            if self._trainer is None:
                result = read_struct(self._folder / RESULT, FineTuneResult)
                if result is not None:
                    self._report(file, telling)
                    return result
                self._trainer = TrainerProcess(self._folder)
                if self.stopping.is_set():  # before the trainer was there to be killed
                    self.close()
            self.stopping.wait(_LOOK_S)
            status = self._trainer.status
            self._report(file, telling)
            self._write_progress()
            if status is not None:
                self._trainer.close()
                self._trainer = None
                if not self.stopping.is_set():
                    self._judge_end(status)
        return None

    def _ask_base(self, return_at: float, telling: Telling) -> bool:
        """Ask a connected base for a while; return whether the trainer's input is complete."""
        task = read_struct(self._folder / TASK, FineTuneTask)
        if task is None or not task.base.is_connected or (self._folder / ANSWERS).exists():
            return task is not None
        while not self.stopping.is_set() and time.monotonic() < return_at:
            base = self._work.find_base(task.base.name)
            if base is None or base.sha256 != task.base.key:
                raise errors.ModelUnavailableError(
                    f"The base model {task.base.name} was removed or declared anew since the "
                    "fine-tune began; look at 'steelyard model list', and start it again."
                )
            if self._asking is None or self._asking.base is not base:
                self._asking = Asking(self._folder, task.method, base)
            is_done = self._asking.look()
            self._note(self._asking.progress, telling)
            self._write_progress()
            if is_done:
                self._asking = None
                return True
        return False

    def _judge_end(self, status: int) -> None:
        """Look at how a trainer ended: raise its failure, or let it be started again."""
        if status == 0 and (self._folder / RESULT).exists():
            return
        if status == FAILED:
            failure = read_struct(self._folder / ERROR, FineTuneFailure)
            if failure is None:
                raise errors.StorageUnavailableError(
                    "The fine-tune's files cannot be written; look at the disk of the worker."
                )
            raise errors.error_classes().get(failure.code, errors.InternalError)(failure.message)
        deaths = read_struct(self._folder / _DEATHS, _Deaths)
        count = 1 if deaths is None or self._furthest > deaths.furthest else deaths.count + 1
        _log.warning(
            "The trainer of %s ended with status %d; it died %d times here.",
            self.job.id,
            status,
            count,
        )
        if count >= _MAX_DEATHS:
            raise errors.InternalError(
                f"The trainer ended with status {status} at the same place {count} times; look at "
                "the worker's log, give it more memory if it was killed, and start the fine-tune "
                "again."
            )
        write_struct(self._folder / _DEATHS, _Deaths(furthest=self._furthest, count=count))
        self.stopping.wait(_RESTART_S * count)

    def _open_reports(self, job: FineTune) -> tuple[ProgressFile, Telling]:
        """Return the trainer's reports from the first on, and how many the state has as events."""
        events = self._work.state.read_now(lambda connection: events_of(connection, job.id))
        telling = Telling(events, with_lora=job.hyperparameters.lora_rank > 0)
        return ProgressFile(self._folder / PROGRESS), telling

    def _report(self, file: ProgressFile, telling: Telling) -> None:
        """Add events for the trainer's reports since the last look."""
        for report in file.read():
            self._note(report, telling)
            place = _PHASES.index(report.phase) + fraction_of(report)
            self._furthest = max(self._furthest, place)

    def _note(self, report: Progress, telling: Telling) -> None:
        """Take a report as the newest, and add its events."""
        self._unwritten = report
        self._tell(telling.events_of(report))

    def _tell(self, events: list[tuple[EventType, str]]) -> None:
        job_id = self.job.id
        for type_, message in events:

            def report(
                lineage: Lineage,
                conditions: Conditions,
                type_: EventType = type_,
                message: str = message,
            ) -> LineageChange:
                return report_job(lineage, job_id, type_, message, conditions)

            self._work.lineages.apply_now(self.job.account_id, report)

    def _write_progress(self) -> None:
        """Keep the last report: at once in a new phase, and about once a second in the same."""
        report, now = self._unwritten, time.monotonic()
        if report is None:
            return
        if report.phase == self._told_phase and now - self._told_at < _TELL_S:
            return
        self._unwritten, self._told_phase, self._told_at = None, report.phase, now
        progress = msgspec.json.encode(progress_to_wire(report))
        is_ours = self._work.state.write_now(
            lambda connection: set_progress(connection, self.job, progress)
        )
        if not is_ours:
            raise LostRunError

    def _write_folder(self, job: FineTune) -> None:
        work = self._work
        stored = work.lineages.read_now(self.job.account_id)
        family = stored.lineage.families[job.family]
        before = trained_version(stored.lineage, family)
        at = self._dataset_at(job.dataset_id, job.dataset_version)
        trained = None if before is None else self._dataset_at(job.dataset_id, before)
        base_before = base_under(stored.lineage, family, job.parent)
        is_move = job.base != base_before
        parent = parent_base = None
        if job.parent is not None:
            parent = work.artifacts.fetch(stored.artifacts[job.parent])
            if is_move or is_only_compared(stored.lineage, family, job.parent):
                parent_base = work.bases(base_before)
        learned = self._still_there(learned_from(stored.lineage, job.parent))
        if job.hyperparameters.lora_rank == 0 and job.hyperparameters.heads != "words":
            self._folder.mkdir(parents=True, exist_ok=True)
            self._exchange_vectors(job, at, write_stored)
        write_folder(
            self._folder,
            job,
            work.tuning_rows.select(
                at, trained, seed=job.hyperparameters.seed, learned=learned, is_move=is_move
            ),
            base=work.bases(job.base),
            parent=parent,
            parent_base=parent_base,
            needed=work.needed,
            threads=work.threads,
            reader=work.reader_for(job.hyperparameters.heads),
            stopping=self.stopping,
        )

    def _exchange_vectors(
        self,
        job: FineTune,
        at: DatasetAt,
        exchange: Callable[[Path, FrameStore, Manifest, str], None],
    ) -> None:
        """Exchange vectors of a dataset's rows by the base model between their store and the folder."""
        base, store = self._work.find_base(job.base), self._work.dataset_files
        if base is not None and base.embed is not None and store is not None:
            exchange(self._folder, store, at.manifest, scorer_of(base.evaluation_key))

    def _still_there(self, versions: Iterable[tuple[str, int]]) -> list[DatasetAt]:
        """Return versions of datasets, but for those that are deleted."""
        versions_left = []
        for dataset_id, version in versions:
            with suppress(errors.NotFoundError, errors.DatasetDeletedError):
                versions_left.append(self._dataset_at(dataset_id, version))
        return versions_left

    def _dataset_at(self, dataset_id: str, version: int) -> DatasetAt:
        caller = Caller(self.job.account_id, None, "full", _WORKER_ADDRESS)
        return asyncio.run(
            self._work.datasets.dataset_at(caller, dataset_id, version, is_new_work=False)
        )

    def _finish(self, job: FineTune, result: FineTuneResult) -> None:
        """Store the files that were made, and then end the fine-tune in one transaction."""
        work = self._work
        artifact = work.artifacts.put(self._folder / MODEL) if result.gate.passed else None
        held_out = self._evaluate(job, result, is_stored=artifact is not None)
        with suppress(errors.SteelyardError):  # the dataset may be gone, and the model is there
            at = self._dataset_at(job.dataset_id, job.dataset_version)
            self._exchange_vectors(job, at, store_read)
        with work.records.draft() as draft:
            shutil.copyfile(self._folder / RECORDS, draft)
            records, _ = work.records.adopt(draft, _RECORDS_SUFFIX)
        curve = msgspec.json.encode(result.curve)
        next_id = new_id("ftj")

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            reason = " ".join(result.sentences) or None
            return finish_job(
                lineage,
                job.id,
                result.gate,
                result.heldout,
                conditions,
                reason=reason,
                next_id=next_id,
            )

        def end(connection: Connection) -> Applied:
            is_ours = set_of_run(
                connection,
                fine_tunes,
                self.job,
                artifact_sha256=artifact,
                records_sha256=records,
                curve=curve,
            )
            if not is_ours:
                raise LostRunError
            applied = work.lineages.apply_in(connection, self.job.account_id, command)
            if held_out is not None and applied.lineage.jobs[job.id].status == "succeeded":
                model = applied.lineage.models.get(adapter_of(job.id))
                insert_held_out(connection, held_out, model, work.now())
            return applied

        work.lineages.follow(work.state.write_now(end))
        work.files.remove(job.id)

    def _evaluate(
        self, job: FineTune, result: FineTuneResult, *, is_stored: bool
    ) -> dict[str, Any] | None:
        held_out = self._work.held_out
        if held_out is None:
            return None
        at = self._dataset_at(job.dataset_id, job.dataset_version)
        sha256, records = result.artifact_sha256, self._folder / RECORDS
        model = model_of(job, 0, result.gate, result.heldout, self._work.now())
        timed = model if is_stored else None
        return held_out.make(job, self.job.account_id, at, sha256, records, timed)
