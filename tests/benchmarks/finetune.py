"""Fine-tunes of heads against other ways to learn one decision, on the same rows and machine.

Run it as a script; ``README.md`` beside it says how, and explains the columns. It reads labelled
text from a folder that is not part of this repository, and skips without it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from biencoder import BiEncoder, find_weights
from estimates import basic_interval
from finetune_methods import (
    Clock,
    Task,
    Trained,
    in_calls,
    setfit_lacking,
    train_lightgbm,
    train_ours,
    train_regression,
    train_setfit,
    train_tfidf,
)
from heldout import LabelledRow, find_sources, read_rows
from machine import describe_machine
from quality_tables import text_table
from threadpoolctl import threadpool_limits

from models import add_arguments, load_model
from steelyard.calibration.intervals import (
    mean_interval,
    percentile_interval,
    proportion_interval,
)
from steelyard.calibration.metrics import decision_hits, decision_log_losses, ece

TASKS = ("banking77", "clinc150")
METHODS = (
    "ours",
    "tfidf + lr",
    "lr, minilm",
    "lr, ours",
    "lightgbm, minilm",
    "setfit",
)
TRAIN_SUFFIX = ".train.jsonl.gz"
FEW = 8
#: Contexts answered one by one to time serving, and resamples of figures that are no mean.
SERVED, RESAMPLES = 200, 300


@dataclass(frozen=True, slots=True)
class Figure:
    value: float
    low: float
    high: float

    def text(self, digits: int = 4) -> str:
        return f"{self.value:.{digits}f} [{self.low:.{digits}f} {self.high:.{digits}f}]"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one method on one task."""

    task: str
    rows: str
    method: str
    n_train: int
    n: int
    accuracy: Figure
    log_loss: Figure
    gain: Figure | None
    ece: Figure
    aurc: Figure
    seconds: dict[str, float]
    served_ms: float
    note: str


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.data is None:
        print("skipped: finetune.py reads labelled text from --data DIR")
        return 0
    sources = find_sources(options.data)
    pairs = {
        name: (sources[name].with_name(name + TRAIN_SUFFIX), sources[name])
        for name in options.tasks
        if name in sources and sources[name].with_name(name + TRAIN_SUFFIX).is_file()
    }
    if not pairs:
        print(f"skipped: no {TRAIN_SUFFIX} beside a test file of those names under {options.data}")
        return 0
    print("\n".join(describe_machine()), flush=True)
    results: list[Result] = []
    for name, (train, test) in pairs.items():
        task = read_task(read_rows(train), read_rows(test, options.rows, options.seed))
        cuts = {"full": task, f"{FEW} each": task.few(FEW, options.seed)}
        for rows in options.cuts:
            results += measure_all(name, rows, cuts[rows], options)
    print(f"\n95 % intervals in brackets; seed {options.seed}\n")
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in results], indent=1))
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of NAME.train and NAME.test.jsonl.gz")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--cuts", nargs="+", choices=("full", f"{FEW} each"), default=["full", f"{FEW} each"]
    )
    parser.add_argument("--rows", type=int, help="test rows, a seeded sample (default: all)")
    parser.add_argument("--encoder", type=Path, help="folder of the untouched all-MiniLM-L6-v2")
    parser.add_argument("--lightgbm-rounds", type=int, default=60)
    parser.add_argument("--setfit-steps", type=int, default=1_600, help="steps at most")
    add_arguments(parser)
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def read_task(train: Sequence[LabelledRow], test: Sequence[LabelledRow]) -> Task:
    """Make one task of rows that all ask one decision, in any order of its outcomes.

    Test rows whose right outcome no training row has are left out: nothing here could learn it.
    """
    decision = train[0].request.decisions[0]
    place = {text: at for at, text in enumerate(decision.outcomes)}

    def labels(rows: Sequence[LabelledRow]) -> np.ndarray:
        return np.array(
            [place[row.request.decisions[0].outcomes[int(row.targets[0].argmax())]] for row in rows]
        )

    learned, wanted = labels(train), labels(test)
    is_learned = np.isin(wanted, learned)
    if not is_learned.all():
        n = int((~is_learned).sum())
        print(f"{n:,} test rows are left out: no training row has their outcome", file=sys.stderr)
    return Task(
        decision,
        [row.request.context for row in train],
        learned,
        [row.request.context for row, is_kept in zip(test, is_learned, strict=True) if is_kept],
        wanted[is_learned],
    )


def trainers(
    task: Task, options: argparse.Namespace
) -> Iterator[tuple[str, Callable[[], Trained]]]:
    """Return each selected method, loading its needs when its turn comes."""
    wanted, seed = options.methods, options.seed
    [engine, *_] = options.engine or ["auto"]
    model = load_model(engine, folder=options.model, threads=options.threads)
    weights = find_weights(options.encoder)
    if "ours" in wanted:
        yield "ours", lambda: train_ours(task, model.scorer, seed)
    if "tfidf + lr" in wanted:
        yield "tfidf + lr", lambda: train_tfidf(task, seed)
    if "lr, ours" in wanted:
        yield "lr, ours", lambda: train_regression(task, in_calls(model.scorer.embed), seed)
    if weights is None:
        print("minilm and setfit are skipped: no weights (--encoder DIR)", file=sys.stderr)
        return
    untouched = BiEncoder(weights)
    if "lr, minilm" in wanted:
        yield "lr, minilm", lambda: train_regression(task, untouched.embed, seed)
    if "lightgbm, minilm" in wanted:
        rounds = options.lightgbm_rounds
        yield "lightgbm, minilm", lambda: train_lightgbm(task, untouched.embed, seed, rounds)
    if "setfit" in wanted:
        lacking = setfit_lacking()
        if lacking:
            print(f"setfit is skipped: {lacking}", file=sys.stderr)
            return
        yield "setfit", lambda: train_setfit(task, weights, seed, options.setfit_steps)


def measure_all(name: str, rows: str, task: Task, options: argparse.Namespace) -> list[Result]:
    results: list[Result] = []
    ours: np.ndarray | None = None
    for method, train in trainers(task, options):
        print(f"{name}, {rows}: {method}", file=sys.stderr, flush=True)
        # As a fine-tune does: BLAS's threads would wait for each other in every method's optimiser.
        with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
            warnings.simplefilter("ignore")
            trained = train()
            shares = normalised(trained.answer(task.tests))
            served = time_serving(trained, task.tests[:SERVED])
        losses = decision_log_losses(shares, targets_of(task))
        if method == "ours":
            ours = losses
        gain = None if ours is None or method == "ours" else mean_figure(losses - ours)
        result = measure(task, shares, losses, gain, trained.clock)
        results.append(
            Result(
                name,
                rows,
                method,
                len(task.contexts),
                served_ms=served,
                note=trained.note,
                **result,
            )
        )
        print(table(results[-1:]), file=sys.stderr, flush=True)
    return results


def measure(
    task: Task, shares: np.ndarray, losses: np.ndarray, gain: Figure | None, clock: Clock
) -> dict[str, Any]:
    targets = targets_of(task)
    hits = decision_hits(shares, targets)
    n = len(hits)
    around = proportion_interval(float(hits.sum()), n)
    rng = np.random.default_rng(0)
    draws = rng.integers(n, size=(RESAMPLES, n))
    error = ece(shares, targets)
    errors = [ece(shares[draw], targets[draw]) for draw in draws]
    tops = shares.max(axis=1)
    risk = area_under_risk(tops, hits)
    risks = [area_under_risk(tops[draw], hits[draw]) for draw in draws]
    of_ece, of_risk = basic_interval(error, errors), percentile_interval(risks)
    return {
        "n": n,
        "accuracy": Figure(float(hits.mean()), around.low, around.high),
        "log_loss": mean_figure(losses),
        "gain": gain,
        "ece": Figure(error, of_ece.low, of_ece.high),
        "aurc": Figure(risk, of_risk.low, of_risk.high),
        "seconds": clock.seconds,
    }


def area_under_risk(tops: np.ndarray, hits: np.ndarray) -> float:
    """Return the mean error rate over coverages, the surest decisions answered first."""
    wrong = 1 - hits[np.argsort(-tops, kind="stable")]
    return float((np.cumsum(wrong) / np.arange(1, len(wrong) + 1)).mean())


def mean_figure(values: np.ndarray) -> Figure:
    around = mean_interval(values)
    return Figure(float(values.mean()), around.low, around.high)


def targets_of(task: Task) -> np.ndarray:
    return np.eye(len(task.decision.outcomes))[task.truths]


def normalised(shares: np.ndarray) -> np.ndarray:
    clipped = np.clip(shares, 0, 1)
    return clipped / clipped.sum(axis=1, keepdims=True)


def time_serving(trained: Trained, contexts: Sequence[str]) -> float:
    """Return the CPU milliseconds of a decision, asked one at a time."""
    trained.answer(contexts[:1])
    began = time.process_time()
    for context in contexts:
        trained.answer([context])
    return (time.process_time() - began) / len(contexts) * 1e3


def table(results: Sequence[Result]) -> str:
    header = [
        "task",
        "rows",
        "method",
        "n train",
        "n",
        "accuracy",
        "log loss",
        "more than ours by",
        "ECE",
        "AURC",
        "reading s",
        "learning s",
        "learning CPU s",
        "CPU ms",
        "note",
    ]
    lines = [
        [
            one.task,
            one.rows,
            one.method,
            f"{one.n_train:,}",
            f"{one.n:,}",
            one.accuracy.text(3),
            one.log_loss.text(3),
            "" if one.gain is None else one.gain.text(3),
            one.ece.text(3),
            one.aurc.text(4),
            seconds(one, "reading"),
            seconds(one, "learning"),
            seconds(one, "learning cpu"),
            f"{one.served_ms:.2f}",
            one.note,
        ]
        for one in results
    ]
    return text_table(header, lines)


def seconds(result: Result, what: str) -> str:
    return f"{result.seconds[what]:.1f}" if what in result.seconds else ""


if __name__ == "__main__":
    sys.exit(main())
