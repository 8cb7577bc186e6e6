"""A fine-tune from its folder's task and rows to its artifact, records and verdict.

Phases: LoRA where a rank is asked for, features of the training rows, heads and their calibration,
held-out scoring, the gate. The results of each are on the disk before the note that they are whole, and
a phase with that note is not done again: a program killed at any moment goes on where it was.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from steelyard.calibration.temperature import TemperatureTable
from steelyard.durable import flush_tree
from steelyard.errors import SteelyardError, TrainingUnavailableError
from steelyard.evaluations.gate_wire import GateWords
from steelyard.evaluations.measures.gate import Verdict
from steelyard.evaluations.measures.records import Records, UnmeasurableError, measure_records
from steelyard.evaluations.measures.sampling import measures_of
from steelyard.evaluations.measures.summary import metrics_of
from steelyard.evaluations.wire import RecordGroup
from steelyard.proof.differences import Bootstrap
from steelyard.scoring.assets import MANIFEST
from steelyard.scoring.entailment.reader import EvidenceReader
from steelyard.scoring.heads import Heads
from steelyard.scoring.ladder import FOLDER as LADDER
from steelyard.scoring.merging import ADAPTER_FILES, merged_scorer
from steelyard.scoring.novelty import TrainingTexts, word_vectors
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.shipped import READER
from steelyard.scoring.tuned import (
    FORMAT,
    ArtifactBase,
    ArtifactManifest,
    ArtifactReader,
    TunedScorer,
    identity_of,
    load_tuned,
    read_artifact,
)
from steelyard.trainer.answers import AnsweredScorer
from steelyard.trainer.artifact import versions_of, write_artifact
from steelyard.trainer.bases import TrainedBase, load_base
from steelyard.trainer.card import CardFigures, render_card
from steelyard.trainer.cheapest import compare_words, take_words, time_both
from steelyard.trainer.durable import read_struct, write_struct
from steelyard.trainer.features import Features, compute_features
from steelyard.trainer.fitting import WORDS_ALONE, FitReport, fit_heads
from steelyard.trainer.judging import judge_by_origin, nothing_to_judge
from steelyard.trainer.ladder import certify_ladder, take_steps, time_ladder
from steelyard.trainer.lora import lacking_for_lora, train_lora
from steelyard.trainer.progress import Reporter
from steelyard.trainer.reading import ReadRows, read_rows
from steelyard.trainer.records import (
    GROUPS,
    RememberingScorer,
    records_of_group,
    score_held_out,
    write_table,
)
from steelyard.trainer.rows import TuningRow
from steelyard.trainer.static import StaticWords
from steelyard.trainer.task import (
    ERROR,
    MODEL,
    PROGRESS,
    RECORDS,
    RESULT,
    ROWS,
    TASK,
    VECTORS,
    FineTuneFailure,
    FineTuneResult,
    FineTuneTask,
    ProgramPhase,
)
from steelyard.trainer.vectors import Floats, key_of, read_vectors, write_vectors

_CURVE = "curve.jsonl"
_PHASES, _FEATURES, _LORA, _HEADS, _SCORES = "phases", "features", "lora", "heads", "scores"
#: Of every so many contexts one is kept from LoRA, so that heads are compared and calibrated on
#: rows that the vectors they read were not trained on.
_HELD_OUT_OF_LORA = 5


class _Adapted(msgspec.Struct, frozen=True):
    """The note that LoRA is trained: where its files are, from the folder on."""

    merged: str


@dataclass(frozen=True, slots=True)
class _Parent:
    """The model that a fine-tune continues, or on another base, is compared with."""

    folder: Path
    manifest: ArtifactManifest
    scorer: TunedScorer
    temperatures: TemperatureTable
    sha256: str


def run_or_tell(folder: Path) -> bool:
    """Run a fine-tune, or write why it failed."""
    (folder / ERROR).unlink(missing_ok=True)
    try:
        run(folder)
    except Exception as error:  # noqa: BLE001  whatever it is, the job has failed and must say so
        # The place alone: a message of a library may hold a row's text.
        where = "".join(traceback.format_tb(error.__traceback__))
        sys.stderr.write(f"{where}{type(error).__name__}\n")
        # A full disk takes no note either; the exit status then says it alone.
        with suppress(OSError):
            write_struct(folder / ERROR, _failure(error))
        return False
    return True


def run(folder: Path) -> FineTuneResult:
    """Run a fine-tune, resuming from durable phases; one that has ended is not run again."""
    done = read_struct(folder / RESULT, FineTuneResult)
    if done is not None:
        return done
    task = read_struct(folder / TASK, FineTuneTask)
    if task is None:
        raise ValueError(f"The folder holds no {TASK}.")
    (folder / _PHASES).mkdir(exist_ok=True)
    with Reporter(folder / PROGRESS, folder / _CURVE) as reporter:
        return _Program(folder, task, reporter).run()


class _Program:
    """One run; everything it needs is loaded when it is needed first."""

    def __init__(self, folder: Path, task: FineTuneTask, reporter: Reporter) -> None:
        self._folder = folder
        self._task = task
        self._reporter = reporter
        self._reader = None if task.reader is None else EvidenceReader(Path(task.reader))

    def run(self) -> FineTuneResult:
        task, reporter = self._task, self._reporter
        first: ProgramPhase = "lora" if task.lora_rank > 0 else "features"
        reporter.tell(first, 0, 1, message="Reading the rows.")
        rows = read_rows(self._folder / ROWS, task.method)
        if not rows.training:
            raise UnmeasurableError("No training row has a label; add rows to train on.")
        base = load_base(task.base, task, self._folder)
        parent = self._load_parent(base)
        # Heads and an adapter of another base read other vectors: nothing of that parent is used.
        origin = parent if task.parent_base is None else None
        if self._reader is None and origin is not None:
            self._reader = origin.scorer.reader  # a family that reads evidence goes on with it
        adapter = self._train_lora(rows, base, origin)
        scorer = self._scorer_of(base, origin, adapter)
        remembering = RememberingScorer(scorer)
        report = self._fit_heads(rows, remembering, origin, adapter)
        table, by_words = self._score(rows, base, parent, remembering)
        words = self._compare_words(rows, table, by_words, scorer)
        heads = self._folder / _HEADS
        if words is not None and words.as_right and task.heads == "cheapest":
            table, heads = take_words(table, by_words), heads / WORDS_ALONE
        if words is not None and task.heads == "ladder":
            table, words = self._climb(rows, table, by_words, words, scorer)
        write_table(self._folder / RECORDS, table)
        verdict, figures = self._judge(rows, table, by_words, parent)
        reader = self._reader_of(Heads.load(heads))
        verdict = replace(
            verdict,
            gate=msgspec.structs.replace(
                verdict.gate,
                words=msgspec.UNSET if words is None else words,
                reader=msgspec.UNSET if reader is None else reader.name,
            ),
        )
        parts = {
            path.relative_to(heads).as_posix(): path
            for path in (*sorted(heads.glob("heads*")), *sorted(heads.glob(f"{LADDER}/*")))
            if path.is_file()
        }
        if adapter is not None:
            parts |= {name: adapter / name for name in ADAPTER_FILES}
        manifest = self._manifest_of(base, parent, reader, has_adapter=adapter is not None)
        card = render_card(task, rows.counts, report, verdict, figures, manifest)
        sha256 = write_artifact(self._folder / MODEL, parts, card, manifest)
        result = FineTuneResult(
            artifact_sha256=sha256,
            gate=verdict.gate,
            sentences=list(verdict.sentences),
            heldout=figures.heldout,
            curve=reporter.curve(),
            groups=[group for group in GROUPS if group in figures.groups],
            rows=rows.counts,
            report=msgspec.to_builtins(report),
        )
        reporter.tell("gate", 1, 1, message="The fine-tune is trained and judged.")
        write_struct(self._folder / RESULT, result)
        return result

    def _manifest_of(
        self,
        base: TrainedBase,
        parent: _Parent | None,
        reader: ArtifactReader | None,
        *,
        has_adapter: bool,
    ) -> ArtifactManifest:
        """Return the manifest of the trained model, whose files are not listed yet."""
        name, engine = self._task.base.name, base.scorer.engine
        return ArtifactManifest(
            format=FORMAT,
            base=ArtifactBase(name=name, sha256=identity_of(base.scorer), engine=engine),
            method=self._task.method,
            has_adapter=has_adapter,
            parent_sha256=None if parent is None else parent.sha256,
            versions=versions_of(with_lora=has_adapter),
            files={},
            reader=reader,
        )

    def _load_parent(self, base: TrainedBase) -> _Parent | None:
        if self._task.parent is None:
            if self._task.against == "parent":
                raise ValueError("The gate is to compare with a parent, and the task has none.")
            return None
        folder, other = Path(self._task.parent), self._task.parent_base
        below = base
        if other is not None and other != self._task.base:
            below = load_base(other, self._task, self._folder)
        return _Parent(
            folder=folder,
            manifest=read_artifact(folder),
            scorer=load_tuned(
                folder,
                below.scorer,
                threads=self._task.threads,
                reader=READER if self._task.reader is None else Path(self._task.reader),
            ),
            temperatures=below.temperatures,
            sha256=hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
        )

    def _train_lora(self, rows: ReadRows, base: TrainedBase, parent: _Parent | None) -> Path | None:
        """Return the folder of the model's adapter: a new one, its parent's, or ``None``."""
        task = self._task
        inherited = parent.folder if parent is not None and parent.manifest.has_adapter else None
        if task.lora_rank == 0:
            return inherited
        note = self._folder / _PHASES / "lora.json"
        done = read_struct(note, _Adapted)
        if done is not None:
            return self._folder / done.merged
        if task.base.double is not None:
            raise TrainingUnavailableError(
                "The test double has no weights for LoRA; leave lora_rank out."
            )
        lacking = lacking_for_lora()
        if lacking is not None:
            raise TrainingUnavailableError(lacking)
        folder = self._folder / _LORA
        folder.mkdir(exist_ok=True)

        def on_step(step: int, loss: float, learning_rate: float) -> None:
            message = f"LoRA step {step} of {task.steps}."
            rates = {"loss": loss, "learning_rate": learning_rate}
            self._reporter.tell("lora", step, task.steps, **rates, message=message)

        self._reporter.tell("lora", 0, task.steps, message="Training LoRA.")
        held_out = _held_out_of_lora(rows.training, task.seed)
        seen = [row for row in rows.training if row.context_sha256 not in held_out]
        merged = train_lora(
            seen,
            base_folder=base.folder,
            parent=inherited,
            rank=task.lora_rank,
            steps=task.steps,
            learning_rate=task.learning_rate,
            seed=task.seed,
            method=task.method,
            folder=folder,
            on_step=on_step,
            heldout=[row for row in rows.training if row.context_sha256 in held_out],
            threads=task.threads,
        )
        flush_tree(folder)
        write_struct(note, _Adapted(merged.relative_to(self._folder).as_posix()))
        return merged

    def _scorer_of(self, base: TrainedBase, parent: _Parent | None, adapter: Path | None) -> Scorer:
        """Return the scorer of the model: the base model, or the base with its adapter merged in."""
        if adapter is None:
            return base.scorer
        # A parent trained with an earlier reading goes on with it; what continues it does not.
        is_alike = parent is not None and parent.manifest.base.sha256 == identity_of(base.scorer)
        if parent is not None and is_alike and adapter == parent.folder:
            return parent.scorer.scorer
        return merged_scorer(
            base.folder, adapter, threads=self._task.threads, engine=base.scorer.engine
        )

    def _fit_heads(
        self,
        rows: ReadRows,
        remembering: RememberingScorer,
        parent: _Parent | None,
        adapter: Path | None,
    ) -> FitReport:
        note = self._folder / _PHASES / "heads.json"
        done = read_struct(note, FitReport)
        if done is not None:
            return done
        task = self._task
        tuning = self._tuning_rows(rows, parent, adapter)
        # Those of a base with an adapter are others.
        stored = self._stored_vectors(rows) if adapter is None else {}

        def on_heads(step: int, steps: int, loss: float | None) -> None:
            self._reporter.tell("heads", step, steps, loss=loss, message="Fitting heads.")

        features = (
            Features(0, {}, {}, static=StaticWords.of(remembering.scorer))
            if task.heads == "words"
            else self._read_features(tuning, remembering.scorer, stored)
        )
        folder = self._folder / _HEADS
        folder.mkdir(exist_ok=True)
        report = fit_heads(
            tuning,
            features,
            method=task.method,
            seed=task.seed,
            folder=folder,
            parent=None if parent is None else parent.scorer.heads,
            # Heads of the parent read the vectors of its own encoder.
            same_features=adapter is None or task.lora_rank == 0,
            on_progress=on_heads,
        )
        training, evaluation = (
            [decision.context for decision in side] for side in (tuning, rows.evaluation)
        )
        by_words = TrainingTexts.of(training, evaluation, word_vectors, of_words=True)
        by_words.save(folder / WORDS_ALONE)
        # Held-out contexts that are read here are not read again to score them.
        embed = getattr(remembering, "embed", None)
        if task.heads == "words":
            by_words.save(folder)
        elif embed is not None and features.vectors:
            TrainingTexts.of(training, evaluation, features.sparing(embed)).save(folder)
            if adapter is None:
                contexts = sorted({*training, *evaluation} & features.vectors.keys())
                read = {key_of(text): features.vectors[text] for text in contexts}
                write_vectors(self._folder / VECTORS, read)
        flush_tree(folder)
        write_struct(note, report)
        return report

    def _read_features(
        self, tuning: Sequence[TuningRow], scorer: Scorer, stored: Mapping[str, Floats]
    ) -> Features:
        def on_features(step: int, steps: int) -> None:
            self._reporter.tell("features", step, steps, message="Reading the training rows.")

        folder = self._folder / _FEATURES
        folder.mkdir(exist_ok=True)
        # A connected base was asked about every row.
        chosen = scorer.read_rows(tuning) if isinstance(scorer, AnsweredScorer) else None
        return compute_features(
            tuning, scorer, folder, on_features, chosen=chosen, reader=self._reader, stored=stored
        )

    def _stored_vectors(self, rows: ReadRows) -> dict[str, Floats]:
        """Return the vectors of contexts that were read before."""
        stored = read_vectors(self._folder / VECTORS)
        texts = {row.context for row in rows.training} | {row.context for row in rows.evaluation}
        keys = {text: key_of(text) for text in texts}
        return {text: stored[key] for text, key in keys.items() if key in stored}

    def _tuning_rows(
        self, rows: ReadRows, parent: _Parent | None, adapter: Path | None
    ) -> list[TuningRow]:
        """Mark the rows that the heads' inputs were trained on, by the parent or by LoRA now."""
        has_new_adapter = adapter is not None and self._task.lora_rank > 0
        held_out = (
            _held_out_of_lora(rows.training, self._task.seed) if has_new_adapter else frozenset()
        )
        return [
            replace(
                row,
                is_seen=(parent is not None and row.is_seen)
                or (has_new_adapter and row.context_sha256 not in held_out),
            )
            for row in rows.training
        ]

    def _score(
        self,
        rows: ReadRows,
        base: TrainedBase,
        parent: _Parent | None,
        remembering: RememberingScorer,
    ) -> tuple[pa.Table, pa.Table]:
        """Score the held-out rows by every group of models, and by words alone as the adapted one."""
        reporter = self._reporter
        readers = {id(base.scorer): RememberingScorer(base.scorer)}
        readers[id(remembering.scorer)] = remembering
        models: dict[RecordGroup, Scorer] = {
            "adapted": self._tuned(self._folder / _HEADS, remembering),
            "base": readers[id(base.scorer)],
        }
        temperatures = dict.fromkeys(GROUPS, base.temperatures)
        if parent is not None:
            shared = readers.get(id(parent.scorer.scorer))
            # On another base, or an earlier reading, it answers with temperatures of its own.
            models["parent"] = (
                parent.scorer
                if shared is None
                else TunedScorer(
                    parent.scorer.heads,
                    shared,
                    reader=parent.scorer.reader,
                    ladder=parent.scorer.ladder,
                )
            )
            temperatures["parent"] = parent.temperatures

        def forget() -> None:
            for reader in readers.values():
                reader.forget()

        def on_progress(step: int, steps: int) -> None:
            reporter.tell("scoring", step, steps, message="Scoring the held-out rows.")

        reporter.tell("scoring", 0, len(rows.evaluation) or 1, message="Scoring the held-out rows.")
        table = score_held_out(
            rows.evaluation,
            models,
            temperatures,
            self._folder / _SCORES,
            on_part=forget,
            on_progress=on_progress,
        )
        words = self._tuned(self._folder / _HEADS / WORDS_ALONE, remembering)
        by_words = score_held_out(
            rows.evaluation,
            {"adapted": words},
            temperatures,
            self._folder / _SCORES / WORDS_ALONE,
            on_part=forget,
            on_progress=lambda *_: None,
        )
        return table, by_words

    def _judge(
        self, rows: ReadRows, table: pa.Table, by_words: pa.Table, parent: _Parent | None
    ) -> tuple[Verdict, CardFigures]:
        task = self._task
        self._reporter.tell("gate", 0, 1, message="Judging the model on the held-out rows.")
        if not rows.evaluation:
            return nothing_to_judge(task), CardFigures(heldout={"n": 0.0}, groups={}, baseline=None)
        groups = [group for group in GROUPS if group != "parent" or parent is not None]
        records = {group: records_of_group(table, group, task.method) for group in groups}
        baseline = records_of_group(by_words, "adapted", task.method)
        bootstrap = Bootstrap(seed=task.seed)
        verdict = judge_by_origin(task, table, rows.evaluation, by_words, bootstrap)

        def measured(group_records: Records) -> Any:
            return measures_of(
                measure_records(group_records), group_records.context_codes, bootstrap
            )

        figures = CardFigures(
            heldout=_heldout(records["adapted"]),
            groups={group: measured(record) for group, record in records.items()},
            baseline=measured(baseline),
        )
        return verdict, figures

    def _tuned(self, folder: Path, scorer: Scorer) -> TunedScorer:
        return TunedScorer(Heads.load(folder), scorer, reader=self._reader)

    def _reader_of(self, heads: Heads) -> ArtifactReader | None:
        """Return the reader whose evidence some heads read; ``None`` where they read none."""
        if self._reader is None or not any(head.needs_evidence for head in heads):
            return None
        return ArtifactReader(name=self._reader.name, sha256=self._reader.sha256)

    def _compare_words(
        self, rows: ReadRows, table: pa.Table, by_words: pa.Table, scorer: Scorer
    ) -> GateWords | None:
        """Compare words alone with the heads that read more, and say which are to serve."""
        task = self._task
        compared = compare_words(task, table, by_words, rows.evaluation, Bootstrap(seed=task.seed))
        if compared is None:
            return None
        folder = self._folder / _HEADS
        heads, words = (self._tuned(each, scorer) for each in (folder, folder / WORDS_ALONE))
        is_taken = task.heads == "cheapest" and compared.as_right
        return msgspec.structs.replace(
            compared,
            serves=is_taken or all(head.reads_words_alone for head in heads.heads),
            cpu_ms=msgspec.UNSET
            if task.base.is_connected
            else time_both(heads, words, rows.evaluation),
        )

    def _climb(
        self,
        rows: ReadRows,
        table: pa.Table,
        by_words: pa.Table,
        words: GateWords,
        scorer: Scorer,
    ) -> tuple[pa.Table, GateWords]:
        """Certify a ladder and store it beside the heads; return the records of who answers, and its figures."""
        folder = self._folder / _HEADS
        heads = Heads.load(folder / WORDS_ALONE)
        texts = TrainingTexts.load(folder / WORDS_ALONE)
        assert texts is not None  # noqa: S101  # stored with the heads
        test = certify_ladder(self._task, (table, by_words), rows.evaluation, heads, texts)
        ladder = test.gate
        if words.cpu_ms is not msgspec.UNSET:
            ladder = msgspec.structs.replace(
                ladder, cpu_ms=time_ladder(test, words.cpu_ms, scorer, rows.evaluation)
            )
        if ladder.thresholds:
            test.ladder.save(folder)
            flush_tree(folder)
            table = take_steps(table, by_words, test.steps)
        return table, msgspec.structs.replace(words, ladder=ladder)


def _held_out_of_lora(rows: Sequence[TuningRow], seed: int) -> frozenset[str]:
    """Draw the contexts that LoRA does not learn from; none where there are few."""
    contexts = {row.context_sha256 for row in rows}
    drawn = sorted(contexts, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    return frozenset(drawn[: len(drawn) // _HELD_OUT_OF_LORA])


def _heldout(records: Records) -> dict[str, float]:
    metrics: Mapping[str, Any] = msgspec.to_builtins(metrics_of(records))
    return {name: float(value) for name, value in metrics.items()}


def _failure(error: Exception) -> FineTuneFailure:
    if isinstance(error, SteelyardError):
        return FineTuneFailure(code=error.code, message=error.message)
    if isinstance(error, UnmeasurableError):
        return FineTuneFailure(code="not_measurable", message=str(error))
    if isinstance(error, FloatingPointError):
        return FineTuneFailure(code="not_measurable", message=str(error))
    if isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
        return FineTuneFailure(
            code="storage_unavailable",
            message=f"The fine-tune's files cannot be used: {reason}. Check the disk and start it "
            "again.",
        )
    if isinstance(error, MemoryError):
        return FineTuneFailure(
            code="internal_error",
            message="The fine-tune needs more memory than there is; train on fewer rows.",
        )
    return FineTuneFailure(
        code="internal_error",
        message=f"The fine-tune failed ({type(error).__name__}); the server's log says where. "
        "Report it.",
    )
