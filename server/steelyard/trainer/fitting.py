"""Heads fitted to rows: one for every decision that enough rows ask, calibrated, with a report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from steelyard.calibration.intervals import mean_interval
from steelyard.durable import write_atomically
from steelyard.scoring.head_specs import Calibration, HeadSpec
from steelyard.scoring.heads import Head, Heads
from steelyard.trainer.calibrating import CalibrationChoice, choose_calibration
from steelyard.trainer.candidates import PARENT, Tensors
from steelyard.trainer.choosing import HeadChoice, Option, choose_head, log_prior
from steelyard.trainer.data import DecisionData, decision_data, group_rows
from steelyard.trainer.features import Features
from steelyard.trainer.rows import TuningRow
from steelyard.wire.decoding import decode
from steelyard.wire.methods import Method

#: Contexts that a decision must have for a head; with fewer the base answers it.
LEAST_CONTEXTS = 8
#: Where heads that are done are kept until all are; and, there and beside the heads, those that
#: read words alone.
PARTS, WORDS_ALONE = "parts", "words"
_REPORT = "report.json"
#: Steps of a decision's progress: its candidates, their blends, the last fit.
_STEPS = 8


class CandidateReport(Struct, frozen=True, kw_only=True):
    """One candidate's cross-validated log loss: the mean in nats, and its 95 % interval."""

    name: str
    n: int
    loss: float
    low: float
    high: float


class DecisionReport(Struct, frozen=True, kw_only=True):
    """The candidates of one decision."""

    fingerprint: str
    kind: str
    question: str
    outcomes: list[str]
    rows: int
    contexts: int
    candidates: list[CandidateReport] = []
    chosen: str | None = None
    weights: dict[str, float] = {}
    calibration: str = "temperature"
    temperature: float = 1.0
    calibrated: CandidateReport | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FittedDecision:
    """The heads of one decision; the base answers it where there is none."""

    report: DecisionReport
    head: Head | None = None
    words: Head | None = None


class FitReport(Struct, frozen=True, kw_only=True):
    """The candidates of every decision."""

    method: Method
    seed: int
    decisions: list[DecisionReport]

    def __str__(self) -> str:
        """Return Markdown: a table of the decisions, and one of the candidates of each."""
        return "\n\n".join(_markdown(decision) for decision in self.decisions)


def fit_heads(
    rows: Sequence[TuningRow],
    features: Features,
    *,
    method: Method,
    seed: int,
    folder: Path,
    parent: Heads | None = None,
    on_progress: Callable[[int, int, float | None], None],
    same_features: bool = True,
) -> FitReport:
    """Fit the heads of a fine-tune and write them into a folder, and below it those of words alone.

    ``on_progress`` gets how many steps of how many are done, and the log loss in nats of the last
    decision, ``None`` before the first is done.
    """
    groups = group_rows(rows)
    steps = _Progress(_STEPS * len(groups), on_progress)
    heads: list[Head] = []
    by_words: list[Head] = []
    reports: list[DecisionReport] = []
    for name, places in groups.items():
        part = folder / PARTS / name
        if not (part / _REPORT).exists():
            inherited = None if parent is None else parent.find(rows[places[0]].decision)
            data = decision_data(rows, places, features, has_rewards=method == "reward")
            # The optimiser adds up long vectors thousands of times a second, and threads that meet
            # as often wait for each other: seconds become minutes on a busy machine. Fits run side
            # by side instead, and sums do not depend on the number of cores.
            with threadpool_limits(1, user_api="blas"):
                fitted = fit_decision(
                    data, seed=seed, parent=inherited, on_step=steps.step, may_keep=same_features
                )
            (part / WORDS_ALONE).mkdir(parents=True, exist_ok=True)
            Heads([] if fitted.head is None else [fitted.head]).save(part)
            Heads([] if fitted.words is None else [fitted.words]).save(part / WORDS_ALONE)
            # Last: it says that the part is whole.
            write_atomically(part / _REPORT, msgspec.json.encode(fitted.report))
        report = decode((part / _REPORT).read_bytes(), DecisionReport)
        heads += Heads.load(part)
        by_words += Heads.load(part / WORDS_ALONE)
        reports.append(report)
        steps.finish(_STEPS * len(reports), report.calibrated)
    if parent is not None and same_features:
        # A decision with too few rows keeps its parent's head too.
        fitted_here = {head.spec.fingerprint for head in heads}
        heads += [head for head in parent if head.spec.fingerprint not in fitted_here]
    Heads(heads).save(folder)
    (folder / WORDS_ALONE).mkdir(exist_ok=True)
    # What has no words, or too few rows, is answered as it is beside it: the last of a name counts.
    Heads([*heads, *by_words]).save(folder / WORDS_ALONE)
    # First what says that a part is whole: killed on the way, none is taken for it.
    for whole in (folder / PARTS).glob(f"*/{_REPORT}"):
        whole.unlink()
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    return FitReport(method=method, seed=seed, decisions=reports)


def fit_decision(
    data: DecisionData,
    *,
    seed: int,
    parent: Head | None,
    on_step: Callable[[], None],
    may_keep: bool = True,
) -> FittedDecision:
    """Fit the head of one decision, and beside it the one that reads words alone."""
    decision = data.decision
    report = DecisionReport(
        fingerprint=data.fingerprint,
        kind=decision.kind,
        question=decision.question,
        outcomes=list(decision.outcomes),
        rows=len(data.names),
        contexts=len(set(data.names)),
    )
    if report.contexts < LEAST_CONTEXTS:
        return FittedDecision(report)
    choice = choose_head(data, parent, seed, on_step, may_keep=may_keep)
    if choice is None:
        return FittedDecision(report)
    report = msgspec.structs.replace(
        report, candidates=[_measured(option.name, option.losses) for option in choice.options]
    )
    words = None if choice.words is None else _calibrated(data, choice.words, choice)[0]
    if choice.keeps_parent:
        report = msgspec.structs.replace(report, chosen=PARENT, weights={PARENT: 1.0})
        return FittedDecision(report, parent, words)
    option = choice.option
    head, calibrated = _calibrated(data, option, choice)
    if option is choice.words:
        words = head
    weights = zip(option.members, option.weights, strict=True)
    curve = calibrated.calibration.curve
    report = msgspec.structs.replace(
        report,
        chosen=option.name,
        weights={member.candidate.name: round(weight, 4) for member, weight in weights},
        calibration="temperature" if curve == "none" else curve,
        temperature=calibrated.calibration.temperature,
        calibrated=_measured(option.name, calibrated.losses),
    )
    return FittedDecision(report, head, words)


def _calibrated(
    data: DecisionData, option: Option, choice: HeadChoice
) -> tuple[Head, CalibrationChoice]:
    """Return the head of an option, fitted on all rows, and its calibration."""
    targets, folds = data.targets[option.rows], choice.folds[option.rows]
    calibrated = choose_calibration(option.logs, targets, folds)
    return _make_head(data, option, calibrated.calibration), calibrated


class _Progress:
    """Counts steps, and tells of each."""

    def __init__(self, n_steps: int, tell: Callable[[int, int, float | None], None]) -> None:
        self._n_steps = n_steps
        self._tell = tell
        self._done = 0
        self._loss: float | None = None

    def step(self) -> None:
        self._done = min(self._done + 1, self._n_steps)
        self._tell(self._done, self._n_steps, self._loss)

    def finish(self, done: int, calibrated: CandidateReport | None) -> None:
        self._done = done
        if calibrated is not None:
            self._loss = calibrated.loss
        self._tell(self._done, self._n_steps, self._loss)


def _make_head(data: DecisionData, option: Option, calibration: Calibration) -> Head:
    """Fit an option on all of its rows."""
    fitted = [member.refit() for member in option.members]
    [first, *others] = fitted
    if not others and first.head is not None and option.booster is None:
        # Calibrated anew rather than wrapped, so that a long line of models does not nest.
        spec = first.head.spec
        steps = _joined([*spec.calibration, calibration])
        spec = msgspec.structs.replace(spec, calibration=steps)
        return Head(spec, first.head.tensors, first.head.tables)
    members = []
    tensors: Tensors = {}
    for i, refitted in enumerate(fitted):
        member, its = refitted.export()
        members.append(member)
        tensors |= {f"{i}.{name}": tensor for name, tensor in its.items()}
    spec = HeadSpec(
        fingerprint=data.fingerprint,
        kind=data.decision.kind,
        question=data.decision.question,
        outcomes=list(data.decision.outcomes),
        members=members,
        weights=option.weights,
        prior=log_prior(data).tolist(),
        booster=option.booster,
        calibration=[calibration],
    )
    tables = {data.table.name: data.table}
    for refitted in fitted:
        if refitted.head is not None:
            tables |= refitted.head.tables
    return Head(spec, tensors, tables)


def _joined(steps: Sequence[Calibration]) -> list[Calibration]:
    """Join temperatures that follow each other into one."""
    joined: list[Calibration] = []
    for step in steps:
        if joined and joined[-1].curve == "none":
            before = joined.pop().temperature
            step = msgspec.structs.replace(step, temperature=step.temperature * before)  # noqa: PLW2901
        joined.append(step)
    return joined


def _measured(name: str, losses: NDArray[np.float64]) -> CandidateReport:
    around = mean_interval(losses, least=0.0)
    loss = float(losses.mean())
    low, high = (loss, loss) if around is None else (around.low, around.high)
    return CandidateReport(name=name, n=len(losses), loss=loss, low=low, high=high)


def _markdown(report: DecisionReport) -> str:
    outcomes = len(report.outcomes)
    lines = [f"### {' '.join(report.question.split())}", ""]
    lines.append(
        f"{report.kind}, {outcomes} outcomes; {report.rows:,} rows of {report.contexts:,} contexts."
    )
    if report.chosen is None:
        return "\n".join([*lines, "", "Too few rows for a head: the base model answers it."])
    if report.calibrated is None:
        reason = (
            "Chosen: the parent's head as it is; on rows that it was not trained on, nothing is "
        )
        return "\n".join([*lines, "", f"{reason}known to be better."])
    parts = ", ".join(f"{name} {weight:.2f}" for name, weight in report.weights.items())
    lines += [
        (
            f"Chosen: {report.chosen} ({parts}), calibrated by {report.calibration} at temperature "
            f"{report.temperature:.3f}."
        ),
        "",
        "| candidate | cross-validated log loss (nats), 95 % interval | n |",
        "| --- | --- | --- |",
    ]
    lines += [_line(candidate, candidate.name) for candidate in report.candidates]
    lines.append(_line(report.calibrated, f"{report.chosen}, calibrated"))
    return "\n".join(lines)


def _line(candidate_report: CandidateReport, name: str) -> str:
    return f"| {name} | {candidate_report.loss:.4f} ({candidate_report.low:.4f} to {candidate_report.high:.4f}) | {candidate_report.n:,} |"
