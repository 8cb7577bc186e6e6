"""Heads fitted to rows: one for every decision that enough rows ask, calibrated, with a report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
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
from steelyard.trainer.baseline import fit_baseline
from steelyard.trainer.calibrating import choose_calibration, row_losses
from steelyard.trainer.candidates import PARENT, Tensors
from steelyard.trainer.choosing import HeadChoice, Option, choose_head, log_prior
from steelyard.trainer.data import DecisionData, decision_data, group_rows
from steelyard.trainer.features import Features
from steelyard.trainer.rows import TuningRow
from steelyard.wire.decoding import decode
from steelyard.wire.methods import Method

#: Contexts that a decision must have for a head; with fewer the base answers it.
LEAST_CONTEXTS = 8
#: Where heads that are done are kept until all are.
PARTS = "parts"
_REPORT = "report.json"
#: Rows up to which the text baseline is fitted beside a head.
_BASELINE_ROWS = 5_000
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
    baseline: CandidateReport | None = None
    baseline_rival: CandidateReport | None = None


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
    """Fit the heads of a fine-tune and write them into a folder.

    ``on_progress`` gets how many steps of how many are done, and the log loss in nats of the last
    decision, ``None`` before the first is done.
    """
    groups = group_rows(rows)
    steps = _Progress(_STEPS * len(groups), on_progress)
    heads: list[Head] = []
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
                head, report = fit_decision(
                    data, seed=seed, parent=inherited, on_step=steps.step, may_keep=same_features
                )
            part.mkdir(parents=True, exist_ok=True)
            Heads([] if head is None else [head]).save(part)
            # Last: it says that the part is whole.
            write_atomically(part / _REPORT, msgspec.json.encode(report))
        report = decode((part / _REPORT).read_bytes(), DecisionReport)
        heads += Heads.load(part)
        reports.append(report)
        steps.finish(_STEPS * len(reports), report.calibrated)
    if parent is not None and same_features:
        # A decision with too few rows keeps its parent's head too.
        fitted = {head.spec.fingerprint for head in heads}
        heads += [head for head in parent if head.spec.fingerprint not in fitted]
    Heads(heads).save(folder)
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
) -> tuple[Head | None, DecisionReport]:
    """Fit the head of one decision."""
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
        return None, report
    choice = choose_head(data, parent, seed, on_step, may_keep=may_keep)
    if choice is None:
        return None, report
    report = msgspec.structs.replace(
        report, candidates=[_measured(option.name, option.losses) for option in choice.options]
    )
    if choice.keeps_parent:
        return parent, msgspec.structs.replace(report, chosen=PARENT, weights={PARENT: 1.0})
    option = choice.option
    targets, folds = data.targets[option.rows], choice.folds[option.rows]
    calibrated = choose_calibration(option.logs, targets, folds)
    head = _make_head(data, option, calibrated.calibration)
    baseline, rival = _compare_with_text(data, choice, calibrated.losses, seed)
    weights = zip(option.members, option.weights, strict=True)
    curve = calibrated.calibration.curve
    return head, msgspec.structs.replace(
        report,
        chosen=option.name,
        weights={member.candidate.name: round(weight, 4) for member, weight in weights},
        calibration="temperature" if curve == "none" else curve,
        temperature=calibrated.calibration.temperature,
        calibrated=_measured(option.name, calibrated.losses),
        baseline=baseline,
        baseline_rival=rival,
    )


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


def _compare_with_text(
    data: DecisionData, choice: HeadChoice, losses: NDArray[np.float64], seed: int
) -> tuple[CandidateReport | None, CandidateReport | None]:
    """Measure the text baseline on one fold, fitted on the others, and the chosen option there.

    Not where rows are many: it would take as long as the head. The gate measures it all the same.
    """
    judged = choice.option.rows
    fold = choice.folds[judged[0]]
    at = np.flatnonzero(choice.folds[judged] == fold)
    inside, outside = judged[at], np.flatnonzero(choice.folds != fold)
    if not len(outside) or len(data.names) > _BASELINE_ROWS:
        return None, None

    def rows_of(places: NDArray[np.intp]) -> list[TuningRow]:
        return [
            TuningRow(
                data.contexts[i], data.names[i], data.decision, data.targets[i].astype(np.float64)
            )
            for i in places
        ]

    baseline = fit_baseline(rows_of(outside), method="sft", seed=seed)
    shares = np.array(baseline.probabilities(rows_of(inside)))
    its = row_losses(np.log(np.maximum(shares, 1e-12)), data.targets[inside])
    return _measured("text baseline", its), _measured(choice.option.name, losses[at])


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
    if report.baseline is not None and report.baseline_rival is not None:
        lines.append(_line(report.baseline, "text baseline, one fold"))
        lines.append(_line(report.baseline_rival, f"{report.chosen}, the same fold"))
    return "\n".join(lines)


def _line(candidate_report: CandidateReport, name: str) -> str:
    return f"| {name} | {candidate_report.loss:.4f} ({candidate_report.low:.4f} to {candidate_report.high:.4f}) | {candidate_report.n:,} |"
