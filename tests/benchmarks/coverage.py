"""How often the 95 % intervals of evaluations and comparisons hold the true figure, by simulation.

Two models answer made-up decisions whose truth is known; each draw is a dataset of its own, and the
table gives the share of draws whose interval holds the figure of the whole world. Nothing is trained
and no weights are needed. Equal seeds give equal tables.

``python tests/benchmarks/coverage.py [--draws 1000] [--contexts 2 3 5 10] [--workers 1]``

It exits with 1 where a figure is held less often than in 93 % of the draws that give an interval. A
figure without an interval in every draw is shown as "none".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from quality_tables import text_table

from steelyard.evaluations.measures.comparison import pair_records, paired_measures
from steelyard.evaluations.measures.outcomes import outcome_measures, outcome_table
from steelyard.evaluations.measures.policies import policy_report
from steelyard.evaluations.measures.records import Records, measure_records, records_from_columns
from steelyard.evaluations.measures.sampling import Bootstrap, measures_of

Array = NDArray[np.float64]

CONTEXTS = (2, 3, 4, 5, 10, 20, 50, 200, 1000, 10_000)
LEAST = 0.93
_OUTCOMES = ("a", "b", "c")
_COSTS = {"act on a": {"a": 0.0, "b": 5.0, "c": 8.0}, "ask": {"a": 1.0, "b": 1.0, "c": 1.0}}
#: Contexts that the true figures are taken from.
_LARGE = 150_000
_METRICS = ("accuracy", "loss", "brier", "ece")


@dataclass(frozen=True)
class World:
    """What is decided, and how well by two models.

    ``noise`` is what hides the right outcome from both models, in which the decisions of a context
    share half; ``own`` is what each model adds, and ``sureness`` how much surer than it should be
    the first one is. A context has from one to twice ``per_context`` less one decisions.
    """

    name: str
    noise: float
    own: float = 0.3
    sureness: float = 1.0
    per_context: int = 1


WORLDS = (
    World("right .6", 1.2),
    World("right .9", 0.55),
    World("right .99", 0.3, own=0.1),
    World("right .8, too sure", 0.75, sureness=2.5),
    World("right .9, four a context", 0.55, per_context=4),
    World("right .6, four a context, too sure", 1.2, per_context=4, sureness=2.0),
)


def draw(world: World, n_contexts: int, rng: np.random.Generator) -> tuple[Records, Records]:
    """Return the records of both models on a dataset of its own."""
    sizes = rng.integers(1, 2 * world.per_context, n_contexts)
    codes = np.repeat(np.arange(n_contexts), sizes)
    n, k = len(codes), len(_OUTCOMES)
    right = rng.integers(k, size=n)
    shared = rng.normal(size=(n_contexts, k))[codes] + rng.normal(size=(n, k))
    evidence = np.eye(k)[right] + world.noise * shared / np.sqrt(2)
    spread = world.noise**2 + world.own**2
    models = []
    for sureness in (world.sureness, 1.0):
        logits = sureness * (evidence + world.own * rng.normal(size=(n, k))) / spread
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        models.append(shares / shares.sum(axis=1, keepdims=True))
    return tuple(_records(codes, right, probabilities) for probabilities in models)


def _records(codes: NDArray[np.intp], right: NDArray[np.intp], probabilities: Array) -> Records:
    n = len(codes)
    return records_from_columns(
        contexts=[f"{code:08d}" for code in codes],
        decision_ids=["topic"] * n,
        kinds=["single"] * n,
        outcomes=[_OUTCOMES] * n,
        probabilities=list(probabilities),
        labels=list(np.eye(len(_OUTCOMES))[right]),
        supervision="targets",
    )


def figures(before: Records, after: Records, bootstrap: Bootstrap) -> dict[str, object]:
    """Return every figure that an evaluation and a comparison show, with its interval."""
    measures = measure_records(before)
    rows = np.arange(len(before))
    overall = measures_of(measures, before.context_codes, bootstrap)
    of_a = outcome_measures(outcome_table(before, measures, rows), bootstrap)[0]
    report = policy_report(
        before, "topic", action_costs=_COSTS, measures=measures, bootstrap=bootstrap
    )
    changes = paired_measures(pair_records(before, after), bootstrap)
    return {
        **{name: getattr(overall, name) for name in _METRICS},
        **{f"{name} of an outcome": getattr(of_a, name) for name in ("precision", "f1", "auc")},
        "cost": report.cost,
        **{f"change of {name}": getattr(changes, name) for name in _METRICS},
    }


@cache
def truth(world: World) -> dict[str, float]:
    """Return the figures of the whole world."""
    before, after = draw(world, _LARGE // world.per_context, np.random.default_rng(7))
    of_all = figures(before, after, Bootstrap(n_resamples=2))
    return {name: _value(figure) for name, figure in of_all.items()}


def _value(figure: object) -> float:
    return float(getattr(figure, "change", getattr(figure, "value", np.nan)))


def covered(world: World, n_contexts: int, *, draws: int, seed: int) -> dict[str, tuple[int, int]]:
    """Return for each figure in how many draws its interval held the truth, and how many had one."""
    true = truth(world)
    counts = dict.fromkeys(true, (0, 0))
    for index in range(draws):
        rng = np.random.default_rng([seed, n_contexts, index])
        before, after = draw(world, n_contexts, rng)
        for name, figure in figures(before, after, Bootstrap(n_resamples=1000)).items():
            low, high = (getattr(figure, end, None) for end in ("low", "high"))
            if isinstance(low, float) and isinstance(high, float):
                holds, n = counts[name]
                # Within rounding: a figure can be exactly at the end of its range.
                counts[name] = (holds + (low - 2e-3 <= true[name] <= high + 2e-3), n + 1)
    return counts


def tables(given: argparse.Namespace) -> Iterator[tuple[World, list[list[str]], bool]]:
    """Yield each world's table, and whether every interval of it holds often enough."""
    with ProcessPoolExecutor(given.workers) as pool:
        for world in WORLDS:
            count = partial(covered, world, draws=given.draws, seed=given.seed)
            counts = []
            for n_contexts, cell in zip(
                given.contexts, pool.map(count, given.contexts), strict=True
            ):
                counts.append(cell)
                # A run of hours that is cut short leaves what was done.
                shares = (f"{name} {holds / n:.3f}" for name, (holds, n) in cell.items() if n)
                line = f"{world.name}, {n_contexts} contexts: {', '.join(shares)}"
                print(line, file=sys.stderr, flush=True)
            lines, holds_all = [], True
            for name in counts[0]:
                cells = [name, f"{truth(world)[name]:.3f}"]
                for holds, n in (count[name] for count in counts):
                    # A share of the draws may be below by chance, not by more than three errors.
                    error = 3 * np.sqrt(LEAST * (1 - LEAST) / max(1, n))
                    holds_all &= n == 0 or holds / n >= LEAST - error
                    cells.append(f"{holds / n:.3f}" if n else "none")
                lines.append(cells)
            yield world, lines, holds_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--contexts", type=int, nargs="+", default=list(CONTEXTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args(arguments)
    holds_all = True
    for world, lines, holds in tables(given):
        print(f"\n{world.name}: share of {given.draws} draws whose interval holds the truth\n")
        print(text_table(["figure", "truth", *map(str, given.contexts)], lines), flush=True)
        holds_all &= holds
    return 0 if holds_all else 1


if __name__ == "__main__":
    sys.exit(main())
