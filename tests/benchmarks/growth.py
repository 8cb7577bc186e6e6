"""The cost of a named decision while it grows a family, over 10,000 requests of public tasks.

    python tests/benchmarks/growth.py --data DIR [--seeds N] [--requests N] [--cache DIR] [TASK ...]

``DIR`` is that of ``quality.py``. The judge is simulated: gold labels, of which a stated share is replaced
by another outcome. The learning curve and the rule that moves are those of the server; the family is a
linear head on the vectors of the shipped model and on words, of their main directions, and its interval that of paired answers.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from steelyard.calibration.intervals import proportion_interval
from steelyard.growth.learning import (
    ENOUGH,
    MIN_EVALUATION,
    MIN_ROWS,
    Labelled,
    estimate,
    fit_and_miss,
    word_vectors,
)
from steelyard.growth.wire import SetGrowth
from steelyard.proof.margins import is_as_right
from steelyard.wire.measures import Measure

#: How often the simulated judges are right: one that a family can reach, and one that it cannot.
JUDGES = {
    "ag_news": (0.85, 0.95),
    "trec": (0.80, 0.97),
    "banking77": (0.60, 0.90),
    "clinc150": (0.65, 0.93),
}
#: Price of a request to the judge, and to the family, in the same unit.
JUDGE_PRICE, FAMILY_PRICE = 1.0, 0.05
#: Share of the requests that feedback comes for, and of its rows that are put aside.
FEEDBACK, EVALUATION = 0.3, 0.2
#: Requests between two turns, and texts by which the truth of an accuracy is known.
TURN, TRUTH = 250, 1_500
#: Numbers of a text's vector.
WIDTH = 192
POLICY = SetGrowth(policy="move")


@dataclass(frozen=True)
class Task:
    """Vectors of texts and the place of the right outcome; the last texts are never drawn about."""

    vectors: np.ndarray
    labels: np.ndarray

    @property
    def n_drawable(self) -> int:
        """How many texts requests are drawn from."""
        return len(self.labels) - min(TRUTH, len(self.labels) // 4)


@dataclass
class Grown:
    """The result of one growth."""

    moved_at: int | None = None
    price: float = 0.0
    n_right: int = 0
    n_judge_right: int = 0
    is_wrong_move: bool = False
    n_trained: int = 0


def main() -> None:
    """Simulate every task with every judge, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "growth")
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("tasks", nargs="*")
    given = parser.parse_args()
    print(
        "| task | judge right | moved | request of the move | price of the judge's | right | judge "
        "alone | fine-tunes | wrong moves |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    wrong = total = 0
    for name in given.tasks or JUDGES:
        task = load_task(given.data, name, given.cache)
        for accuracy in JUDGES[name]:
            grown = [simulate(task, accuracy, given.requests, seed) for seed in range(given.seeds)]
            wrong, total = wrong + sum(each.is_wrong_move for each in grown), total + len(grown)
            print(_line(name, accuracy, grown, given.requests), flush=True)
    interval = proportion_interval(wrong, total)
    print(
        f"\nWrong moves: {wrong} of {total} growths (95 % {interval.low:.1%} to {interval.high:.1%})."
    )


def load_task(data: Path, name: str, cache: Path) -> Task:
    """Return a task's texts as vectors of the shipped model and of words."""
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / f"{name}.npz"
    if not file.exists():
        rows = list(_rows(data, name))[:6_000]
        texts = [str(row["context"]) for row in rows]
        (decision,) = rows[0]["decisions"][:1]
        targets = [row["targets"][decision["id"]] for row in rows]
        names = [max(target, key=target.get) for target in targets]
        outcomes = {outcome: place for place, outcome in enumerate(sorted(set(names)))}
        vectors = np.concatenate([word_vectors(texts), _embed(texts)], axis=1)
        labels = np.array([outcomes[each] for each in names])
        # So that a thousand fits take minutes: the directions in which the texts differ most.
        centred = vectors - vectors.mean(axis=0)
        vectors = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -WIDTH:]
        order = np.random.default_rng(0).permutation(len(texts))
        np.savez(file, vectors=vectors[order].astype(np.float32), labels=labels[order])
    stored = np.load(file)
    return Task(stored["vectors"].astype(np.float64), stored["labels"])


def simulate(task: Task, accuracy: float, n_requests: int, seed: int) -> Grown:
    """Answer requests by the judge until the family that grows beside is as right for less."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, task.n_drawable, n_requests)
    truth, n_outcomes = task.labels[drawn], int(task.labels.max()) + 1
    is_judge_right = rng.random(n_requests) < accuracy
    has_feedback = rng.random(n_requests) < FEEDBACK
    # By text, as a dataset puts rows aside: the same text is always on the same side.
    is_evaluation = rng.random(task.n_drawable)[drawn] < EVALUATION
    grown, n_tried, n_estimated = Grown(n_judge_right=int(is_judge_right.sum())), 0, 0.0
    for start in range(0, n_requests, TURN):
        end = min(start + TURN, n_requests)
        grown.price += JUDGE_PRICE * (end - start)
        grown.n_right += int(is_judge_right[start:end].sum())
        known = np.flatnonzero(has_feedback[:end])
        training, evaluation = known[~is_evaluation[known]], known[is_evaluation[known]]
        if len(training) < max(MIN_ROWS, POLICY.at_least, n_estimated * 1.2):
            continue
        if len(evaluation) < MIN_EVALUATION:
            continue
        n_estimated = len(training)
        sides = tuple(
            Labelled(task.vectors[drawn[side]], truth[side]) for side in (training, evaluation)
        )
        error = float((~is_judge_right[known]).mean())
        measured = Measure(value=error, low=None, high=None, n=len(known))
        made = estimate(
            {"d": sides}, measured, margin=POLICY.margin, n_comparisons=n_tried + 1, seed=seed
        )
        if made.chance < ENOUGH:
            continue
        n_tried += 1
        gains = is_judge_right[evaluation] * -1.0 + ~fit_and_miss(*sides)
        spread = 1.96 * gains.std() / np.sqrt(len(gains))
        if is_as_right(
            gains.mean(), gains.mean() - spread, margin=POLICY.margin, n_comparisons=n_tried
        ):
            _move(
                grown, task, sides[0], end, drawn, truth, is_judge_right, rng, accuracy, n_outcomes
            )
            break
    grown.n_trained = n_tried
    return grown


def _move(grown, task, training, end, drawn, truth, is_judge_right, rng, accuracy, n_outcomes):
    """Answer the rest by the family, and novel texts by the judge."""
    reserve = slice(task.n_drawable, None)
    unseen = Labelled(task.vectors[reserve], task.labels[reserve])
    is_missed = fit_and_miss(training, unseen)
    grown.moved_at = end
    grown.is_wrong_move = bool(1 - is_missed.mean() < accuracy - POLICY.margin)
    rest = np.arange(end, len(drawn))
    if not len(rest):
        return
    is_back = rng.random(len(rest)) < POLICY.novel
    is_family_right = ~fit_and_miss(training, Labelled(task.vectors[drawn[rest]], truth[rest]))
    grown.n_right += int(np.where(is_back, is_judge_right[rest], is_family_right).sum())
    grown.price += len(rest) * FAMILY_PRICE + JUDGE_PRICE * float(is_back.sum())


def _line(name: str, accuracy: float, grown: list[Grown], n_requests: int) -> str:
    moves = [each.moved_at for each in grown if each.moved_at is not None]
    price, right, alone = (
        np.mean([getattr(each, field) for each in grown]) / n_requests
        for field in ("price", "n_right", "n_judge_right")
    )
    at = f"{np.median(moves):,.0f}" if moves else "never"
    tries = np.mean([each.n_trained for each in grown])
    n_wrong = sum(each.is_wrong_move for each in grown)
    return (
        f"| {name} | {accuracy:.0%} | {len(moves)} of {len(grown)} | {at} | {price:.0%} | "
        f"{right:.1%} | {alone:.1%} | {tries:.1f} | {n_wrong} |"
    )


def _rows(data: Path, name: str) -> Iterator[dict]:
    folder = data / "heldout" if (data / "heldout").is_dir() else data
    for part in ("train", "test"):
        file = folder / f"{name}.{part}.jsonl.gz"
        if file.exists():
            with gzip.open(file) as lines:
                yield from map(msgspec.json.decode, lines)


def _embed(texts: list[str]) -> np.ndarray:
    from steelyard.app.bootstrap import open_service
    from steelyard.settings import read_settings

    with tempfile.TemporaryDirectory() as home:
        settings = read_settings({"home": home, "jobs": "off"}, environ={})
        with open_service(settings) as services:
            embed = services.models.default.embed
            return np.concatenate(
                [embed(texts[start : start + 256]) for start in range(0, len(texts), 256)]
            )


if __name__ == "__main__":
    main()
