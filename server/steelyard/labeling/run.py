"""Asking teachers about every row of a source; answers are durable as they come.

About once a second the new answers become a file, and only when it is durable the progress that names
it is committed. So a teacher that answered a row is not asked about it again, whenever the process
dies: at most the answers since the last commit are lost. A teacher that fails for a while is
asked again a few times, and then the row has its error in place of an answer. Rows that it was not
asked about stay open until it is asked, or has failed for as long as a job waits.
"""

from __future__ import annotations

import functools
import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from threading import Event
from typing import Any, ClassVar

import msgspec
from sqlalchemy import Row, Table

from steelyard import errors
from steelyard.asking.window import LOOK_S, RowResult, RowWindow
from steelyard.datasets.version_service import LabelledRow
from steelyard.decisions.validation import decisions_of
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.rows import ReadyRow, RowRenderer
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import LostRunError, Run, TableWork
from steelyard.labeling import files
from steelyard.labeling import store as rows
from steelyard.labeling.files import Answer
from steelyard.labeling.judging import Judgment
from steelyard.labeling.service import teachers_of
from steelyard.labeling.summary import Judged, Summary, summarize
from steelyard.labeling.tables import labeling_jobs
from steelyard.labeling.teachers import JobTeacher
from steelyard.patience import Patience
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.breaker import RestingError
from steelyard.serving.registry import HostedModel
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore

_log = logging.getLogger(__name__)

#: Name of this kind of job.
LABELING = "labeling"
#: Rows that all teachers are asked about before the next ones.
WINDOW_ROWS = 512
#: Seconds between two commits of progress.
COMMIT_S = 1.0
#: Seconds before a teacher that failed is asked again about the rows that it failed on.
PAUSES_S = (0.5, 2.0, 5.0)
#: Lists of decisions that are kept at hand.
_CACHED_TASKS = 1024

_Scores = list[ScoredDecision]


@dataclass(eq=False, slots=True)
class LabelingRuns(TableWork):
    """Labeling as a kind of job."""

    name: ClassVar[str] = LABELING
    table: ClassVar[Table] = labeling_jobs
    move = staticmethod(rows.JOBS.move)

    state: State
    store: FrameStore
    models: EvaluatedModels
    _: KW_ONLY
    commit_s: float = COMMIT_S
    window_rows: int = WINDOW_ROWS
    pauses_s: Sequence[float] = PAUSES_S
    now: Callable[[], float] = time.time

    def open(self, job: PendingJob) -> LabelingRun:
        """Return the run of a job."""
        return LabelingRun(job, self)

    def sweep(self) -> None:
        """Remove files that no source and no job refers to."""
        rows.sweep_files(self.state, self.store)


@dataclass(slots=True)
class _Teacher:
    """A teacher that is loaded, and the rows that it is to be asked about yet."""

    place: int
    model: HostedModel
    renderer: RowRenderer
    window: list[ReadyRow] = field(default_factory=list)
    again: list[ReadyRow] = field(default_factory=list)
    #: What it last failed with on rows of the window, and on any row.
    failures: dict[int, str] = field(default_factory=dict)
    last_failure: str = "The teacher did not answer."
    patience: Patience = field(default_factory=Patience)

    def ask(self, on_end: Callable[[], object]) -> RowWindow[ReadyRow, _Scores]:
        """Begin to ask about the rows of the window, the last first."""
        rows, self.window = self.window, []
        model = self.model.queue
        return RowWindow(
            reversed(rows), lambda row: model.submit(row.request), model.max_queue, on_end=on_end
        )

    def begin(self, rendered: Iterable[ReadyRow]) -> None:
        """Take the rows that it is asked about next, besides those that are open."""
        self.window += rendered
        self.failures = {}

    def begin_round(self) -> None:
        """Take the rows that it failed on again, after those that it was not asked about."""
        # The last is asked first: a short one, since it may fail on long ones alone.
        self.window = sorted(
            self.again, key=lambda row: (row.place not in self.failures, -row.characters)
        )
        self.again = []

    @property
    def unasked(self) -> str:
        """The message of a row that was never sent."""
        return (
            "The teacher was not asked about this row, since it failed on all that it was asked about "
            f"last: {self.last_failure}"
        )

    def judge(self, row: ReadyRow, scored: list[ScoredDecision]) -> Judgment:
        """Return the labels of a row by its scores."""
        decide = self.model.decide
        return Judgment(
            probabilities={
                decision.id: dict(
                    zip(decision.outcomes.names, decide.probabilities(decision, score), strict=True)
                )
                for decision, score in zip(row.decisions, scored, strict=True)
            },
            is_calibrated=self.model.is_calibrated,
        )


@dataclass(slots=True)
class _Labeling:
    """The teachers of a job, the rows that are left, and how many said something of each row."""

    teachers: list[_Teacher]
    left: Iterator[tuple[int, LabelledRow]]
    done: set[tuple[int, int]]
    counts: Counter[int]
    closing: ExitStack

    @property
    def n_complete(self) -> int:
        """Rows that every teacher was asked about."""
        return sum(count == len(self.teachers) for count in self.counts.values())


class LabelingRun(Run):
    """A labeling job that runs here."""

    def __init__(self, job: PendingJob, work: LabelingRuns) -> None:
        super().__init__(job)
        self._work = work
        self._labeling: _Labeling | None = None
        self._answers: list[Answer] = []
        self._committed_at = time.monotonic()

    def advance(self) -> bool:
        """Ask about a window of rows, or sum up when all were asked about."""
        row = self._work.find(self.job)
        if row.completed_rows == row.rows:
            self.close()
            self._finish(row)
            return False
        try:
            labeling = self._labeling = self._labeling or self._open(row)
            self._ask(labeling)
        except BaseException:
            self.close()  # the rest is found anew
            raise
        return True

    def close(self) -> None:
        """Release the teachers."""
        labeling, self._labeling = self._labeling, None
        if labeling is not None:
            labeling.closing.close()

    def _stored(self, row: Row[Any]) -> Iterator[LabelledRow]:
        """Yield the rows of the source with the decisions that they are asked."""
        source = self._work.state.read_now(
            lambda connection: rows.SOURCES.find(connection, row.account_id, row.source_id)
        )
        if source is None or source.deleted_at is not None:
            raise LostRunError
        shared = [] if row.decisions is None else msgspec.json.decode(row.decisions)
        for place, text in enumerate(files.read_rows(self._work.store, source.sha256)):
            sent = msgspec.json.decode(text)
            yield LabelledRow(
                context=sent["context"],
                decisions=sent.get("decisions", shared),
                index=place,
                context_sha256="",
            )

    def _parts(self) -> list[str]:
        return self._work.state.read_now(lambda connection: rows.parts_of(connection, self.job.id))

    def _open(self, row: Row[Any]) -> _Labeling:
        work = self._work
        done = files.answered_pairs(work.store, self._parts())
        stored = enumerate(self._stored(row))
        counts = Counter(place for place, _ in done)
        with ExitStack() as closing:
            teachers = [
                self._load(row, place, teacher, closing)
                for place, teacher in enumerate(teachers_of(row))
            ]
            left = (
                (place, labelled_row)
                for place, labelled_row in stored
                if counts[place] < len(teachers)
            )
            return _Labeling(teachers, left, done, counts, closing.pop_all())

    def _load(self, row: Row[Any], place: int, teacher: JobTeacher, closing: ExitStack) -> _Teacher:
        model = closing.enter_context(self._work.models.open(row.account_id, teacher.model_id))
        if model.evaluation_key != teacher.evaluation_key:
            raise errors.ModelChangedError(
                f"The teacher {teacher.name} is another model than when the job was asked for; "
                "start a new job."
            )
        return _Teacher(place, model, RowRenderer(model.decide, "Row"))

    def _ask(self, labeling: _Labeling) -> None:
        """Ask every teacher about the next rows, again where it failed, and commit as they answer.

        No rows are next while any is open.
        """
        teachers = labeling.teachers
        n_next = 0 if any(teacher.window for teacher in teachers) else self._work.window_rows
        window = list(itertools.islice(labeling.left, n_next))
        for teacher in teachers:
            teacher.begin(self._render(labeling, teacher, window))
        try:
            for pause_s in (*self._work.pauses_s, None):
                self._ask_once(labeling)
                if self.stopping.is_set():
                    return
                for teacher in teachers:
                    teacher.begin_round()
                    if teacher.patience.is_over or pause_s is None:
                        self._give_up(labeling, teacher)
                if pause_s is None or not any(teacher.window for teacher in teachers):
                    return
                if self.stopping.wait(pause_s):
                    return
        finally:
            self._commit(labeling)

    def _give_up(self, labeling: _Labeling, teacher: _Teacher) -> None:
        """Store its error for each row that a teacher failed on; the others stay open for a while."""
        left, teacher.window = teacher.window, []
        for row in left:
            error = teacher.failures.get(row.place)
            if error is None and not teacher.patience.is_over:
                teacher.window.append(row)
            else:
                self._note(labeling, teacher, row.place, Judgment(error=error or teacher.unasked))

    def _render(
        self, labeling: _Labeling, teacher: _Teacher, window: list[tuple[int, LabelledRow]]
    ) -> Iterator[ReadyRow]:
        """Yield the rows that a teacher has not answered and can read, the longest last."""
        ready = []
        for place, row in window:
            if (place, teacher.place) in labeling.done:
                continue
            try:
                ready.append(teacher.renderer.render(row, place))
            except errors.ContextTooLongError as error:
                self._note(labeling, teacher, place, Judgment(error=error.message))
        yield from sorted(ready, key=lambda ready_row: ready_row.characters)

    def _ask_once(self, labeling: _Labeling) -> None:
        is_answered = Event()
        with ExitStack() as closing:
            pairs = [
                (teacher, closing.enter_context(teacher.ask(is_answered.set)))
                for teacher in labeling.teachers
            ]
            while any(window for _, window in pairs) and not self.stopping.is_set():
                is_answered.clear()
                answers = [(*pair, answer) for pair in pairs for answer in pair[1].look(0.0)]
                for teacher, window, answer in answers:
                    self._hear(labeling, teacher, window, answer)
                if not answers:
                    is_answered.wait(LOOK_S)
                if time.monotonic() - self._committed_at >= self._work.commit_s:
                    self._commit(labeling)

    def _hear(
        self,
        labeling: _Labeling,
        teacher: _Teacher,
        window: RowWindow[ReadyRow, _Scores],
        answer: RowResult[ReadyRow, _Scores],
    ) -> None:
        """Take an answer, or note that the teacher is to be asked again.

        Once its server is left alone, or has failed for long, unsent rows wait for the next round, so
        that a round waits for one rest at most.
        """
        row = answer.row
        try:
            judgment = teacher.judge(row, answer.result())
            teacher.patience.succeeded()
        except errors.SteelyardError as error:
            is_anothers = isinstance(error, RestingError)
            if error.retryable or is_anothers:
                teacher.again.append(row)
                if not is_anothers:
                    teacher.last_failure = error.message
                    teacher.patience.failed()
                    if answer.is_sent:
                        teacher.failures[row.place] = error.message
                is_resting = teacher.model.queue.rest_s > 0 or teacher.patience.is_over
                if is_resting or not answer.is_sent:
                    teacher.again += window.take_back()
                return
            judgment = Judgment(error=error.message)
        except Exception as error:  # noqa: BLE001  of a teacher, not of the job
            _log.error("A teacher failed on row %d of %s.", row.place, self.job.id, exc_info=error)
            judgment = Judgment(error="The teacher failed on this row; the worker's log says why.")
        self._note(labeling, teacher, row.place, judgment)

    def _note(self, labeling: _Labeling, teacher: _Teacher, place: int, judgment: Judgment) -> None:
        labeling.done.add((place, teacher.place))
        labeling.counts[place] += 1
        self._answers.append((place, teacher.place, judgment))

    def _commit(self, labeling: _Labeling) -> None:
        self._committed_at = time.monotonic()
        answers, self._answers = self._answers, []
        if not answers:
            return
        work = self._work
        sha256 = files.write_answers(work.store, answers)
        work.write(
            lambda connection: rows.add_part(
                connection,
                self.job,
                sha256=sha256,
                completed_rows=labeling.n_complete,
                at=work.now(),
            )
        )

    def _finish(self, row: Row[Any]) -> None:
        """Summarize the answers, store them in order, and charge for them."""
        work, teachers = self._work, teachers_of(row)
        answers = [
            answer for part in self._parts() for answer in files.read_answers(work.store, part)
        ]
        answers.sort(key=lambda answer: answer[:2])
        summary = self._sum_up(row, teachers, [judgment for _, _, judgment in answers])
        if summary.valid_rows == 0:
            failures = Counter(judgment.error for _, _, judgment in answers if judgment.error)
            raise errors.LabelingUnavailableError(
                f"No teacher labelled any of the {row.rows} rows; the commonest failure is: "
                f"{failures.most_common(1)[0][0]}"
            )
        sha256 = files.write_answers(work.store, answers, len(teachers))

        work.write(
            lambda connection: rows.finish_run(
                connection,
                self.job,
                at=work.now(),
                valid_rows=summary.valid_rows,
                agreement_rows=summary.agreement_rows,
                error_rows=summary.error_rows,
                summary=msgspec.json.encode(summary),
                answers_sha256=sha256,
            )
        )

    def _sum_up(
        self, row: Row[Any], teachers: Sequence[JobTeacher], judgments: Sequence[Judgment]
    ) -> Summary:
        n = len(teachers)
        read = functools.lru_cache(_CACHED_TASKS)(decisions_of)
        tasks = (
            read(msgspec.json.encode(labelled_row.decisions)) for labelled_row in self._stored(row)
        )
        judged = (
            Judged(decisions, judgments[place * n : place * n + n])
            for place, decisions in enumerate(tasks)
        )
        return summarize(judged, [teacher.name for teacher in teachers], row.weighting)
