"""How often the 95 % intervals of evaluations and comparisons hold the true figure, by simulation.

Two models answer made-up decisions whose truth is known; each draw is a dataset of its own, and the
table gives the share of draws whose interval holds the figure of the whole world. Nothing is trained
and no weights are needed. Equal seeds give equal tables.

``python tests/benchmarks/coverage.py [--draws 1000] [--contexts 2 3 5 10] [--world 0] [--markdown]``

Intervals are those of the functions that an evaluation calls, with 1,000 sets of weights instead of
2,000; the tests beside it compare a few draws with the answers of an evaluation and a comparison.

It exits with 1 where a figure is held less often than in 93 % of the draws that give an interval. A
figure without an interval in every draw is shown as "none".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, lru_cache
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from quality_tables import text_table

from steelyard.calibration import agreement, intervals, reliability
from steelyard.calibration.agreement import DecisionVotes
from steelyard.evaluations.measures import comparison
from steelyard.evaluations.measures.comparison import Pairing, paired_measures
from steelyard.evaluations.measures.outcomes import outcome_measures, outcome_table
from steelyard.evaluations.measures.policies import policy_report
from steelyard.evaluations.measures.records import Records, measure_records
from steelyard.evaluations.measures.sampling import measures_of, ratio_measures
from steelyard.proof.differences import Bootstrap, sum_by_context

Array = NDArray[np.float64]
Indexes = NDArray[np.intp]

CONTEXTS = (2, 3, 4, 10, 20, 100, 1000, 10_000)
#: So many contexts and more are weighed by numbers of single precision.
MANY = 1_000
LEAST = 0.93
_OUTCOMES = ("a", "b", "c")
_COSTS = {"act on a": {"a": 0.0, "b": 5.0, "c": 8.0}, "ask": {"a": 1.0, "b": 1.0, "c": 1.0}}
#: Contexts that the true figures are taken from.
_LARGE = 300_000
_METRICS = ("accuracy", "loss", "brier", "ece")
#: Share of the contexts that are in the slice, and of labels that a labeller gets wrong.
_SLICE, _SLIPS = 0.4, 0.15
_RESAMPLES = 1000


@dataclass(frozen=True)
class World:
    """A simulated task, and how well two models answer it.

    ``noise`` hides the right outcome from both models, and the decisions of a context share half of it;
    ``own`` is each model's further noise, and ``sureness`` how much surer than it should be the first
    one is. A context has from one to twice ``per_context`` less one decisions.
    """

    name: str
    noise: float
    own: float = 0.3
    sureness: float = 1.0
    per_context: int = 1


WORLDS = (
    World("right .6", 1.2),
    World("right .8", 0.55),
    World("right .99", 0.24, own=0.1),
    World("right .7, too sure", 0.75, sureness=2.5),
    World("right .8, four a context", 0.55, per_context=4),
    World("right .6, four a context, too sure", 1.2, per_context=4, sureness=2.0),
)


@dataclass(frozen=True)
class Dataset:
    """Decisions, one a row: two models' answers, and two labellers' labels."""

    before: Records
    after: Records
    is_in_slice: NDArray[np.bool_]
    votes: Indexes


def draw(world: World, n_contexts: int, rng: np.random.Generator) -> Dataset:
    """Return a dataset of its own."""
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
        models.append(_records(codes, right, shares / shares.sum(axis=1, keepdims=True)))
    is_in_slice = (rng.random(n_contexts) < _SLICE)[codes]
    slips = rng.random((n_contexts, 2)) < _SLIPS
    of_context = right[np.searchsorted(codes, np.arange(n_contexts))]
    votes = (of_context[:, None] + slips * rng.integers(1, k, (n_contexts, 2))) % k
    return Dataset(*models, is_in_slice, votes)


def _records(codes: Indexes, right: Indexes, probabilities: Array) -> Records:
    n, k = probabilities.shape
    return Records(
        supervision="targets",
        contexts=np.array([f"{code:08d}" for code in codes.tolist()], dtype=np.object_),
        decision_ids=np.full(n, "topic", dtype=np.object_),
        kinds=np.full(n, "single", dtype=np.object_),
        context_codes=codes,
        outcome_lists=(_OUTCOMES,),
        outcome_codes=np.zeros(n, dtype=np.intp),
        offsets=np.arange(n + 1) * k,
        probabilities=probabilities.ravel(),
        labels=np.eye(k)[right].ravel(),
    )


def paired(data: Dataset) -> Pairing:
    """Return both models' answers as pairs, as ``pair_records`` would."""
    rows = np.arange(len(data.before))
    measures = (measure_records(data.before), measure_records(data.after))
    swings = comparison._swings(data.before, data.after, rows, rows)
    return Pairing(rows, rows, data.before.context_codes, *measures, 0, 0, swings)


def figures(
    data: Dataset, n_resamples: int = _RESAMPLES, *, with_votes: bool = True
) -> dict[str, object]:
    """Return every figure that evaluations, comparisons and reviews show, with its interval."""
    bootstrap = Bootstrap(n_resamples=n_resamples)
    pairing = paired(data)
    before, codes = pairing.before, pairing.context_codes
    overall = measures_of(before, codes, bootstrap)
    rows = np.flatnonzero(data.is_in_slice)
    in_slice = measures_of(before.take(rows), codes[rows], bootstrap) if rows.size else None
    table = outcome_table(data.before, before, np.arange(len(codes)))
    of_a = outcome_measures(table, bootstrap)[0]
    report = policy_report(
        data.before, "topic", action_costs=_COSTS, measures=before, bootstrap=bootstrap
    )
    wrong = np.stack([1 - before.values["accuracy"], np.ones(len(codes))], axis=1)
    sums = sum_by_context(wrong, codes)
    (of_wrong,) = ratio_measures(sums[:, :1], sums[:, 1:], bootstrap, are_proportions=[True])
    changes = paired_measures(pairing, bootstrap)
    votes = DecisionVotes()
    for labels in data.votes.tolist() if with_votes else ():
        votes.add(_OUTCOMES, [_OUTCOMES[label] for label in labels], is_ordinal=False)
    return {
        **{name: getattr(overall, name) for name in _METRICS},
        "share wrong": of_wrong,
        **{f"{name} of a slice": getattr(in_slice, name, None) for name in _METRICS},
        **{f"{name} of an outcome": getattr(of_a, name) for name in ("precision", "f1", "auc")},
        "cost": report.cost,
        **{f"change of {name}": getattr(changes, name) for name in _METRICS},
        "agreement (alpha)": votes.alpha(),
    }


@cache
def truth(world: World) -> dict[str, float]:
    """Return the figures of the whole world, whose slice is drawn at random and has the same."""
    data = draw(world, _LARGE // world.per_context, np.random.default_rng(7))
    true = {name: _value(figure) for name, figure in figures(data, n_resamples=2).items()}
    return true | {f"{name} of a slice": true[name] for name in _METRICS}


def _value(figure: object) -> float:
    return float(getattr(figure, "change", getattr(figure, "value", np.nan)))


def covered(world: World, n_contexts: int, *, draws: int, seed: int) -> dict[str, tuple[int, int]]:
    """Return for each figure in how many draws its interval held the truth, and how many had one."""
    true = truth(world)
    counts = dict.fromkeys(true, (0, 0))
    for name, figure in drawn_figures(world, n_contexts, draws, seed):
        low, high = (getattr(figure, end, None) for end in ("low", "high"))
        if isinstance(low, float) and isinstance(high, float):
            holds, n = counts[name]
            # Within rounding: a figure can be exactly at the end of its range.
            counts[name] = (holds + (low - 2e-3 <= true[name] <= high + 2e-3), n + 1)
    return counts


def drawn_figures(
    world: World, n_contexts: int, draws: int, seed: int
) -> Iterator[tuple[str, object]]:
    """Yield the figures of every draw."""
    # The same weights for every dataset of as many contexts, as evaluations have them: drawn once.
    with ExitStack() as stack:
        for module in (intervals, reliability, comparison, agreement):
            stack.enter_context(patch.object(module, "weighed_totals", _weighed))
        for index in range(draws):
            rng = np.random.default_rng([seed, n_contexts, index])
            data = draw(world, n_contexts, rng)
            # What labellers say does not depend on the world, and takes long to count.
            with_votes = n_contexts < MANY or world == WORLDS[0]
            yield from figures(data, with_votes=with_votes).items()


@lru_cache(maxsize=16)
def _weights(n_contexts: int, n_resamples: int, seed: int) -> NDArray[np.floating]:
    rng = np.random.default_rng(seed)
    # Reading the weights is what takes the time over many contexts: half as long, half the time.
    exact = np.float64 if n_contexts < MANY else np.float32
    return rng.standard_exponential((n_resamples, n_contexts + 1), dtype=exact)


def _weighed(sums: Array, *, n_resamples: int = _RESAMPLES, seed: int = 0) -> tuple[Array, Array]:
    n = len(sums)
    # Slices have one number or another of contexts: many share the weights of the next thousand.
    weights = _weights(n if n < MANY else -(-n // MANY) * MANY, n_resamples, seed)
    return (weights[:, :n] @ sums.astype(weights.dtype)).astype(float), weights[:, -1].astype(float)


def cells(counts: Sequence[dict[str, tuple[int, int]]], name: str) -> tuple[list[str], bool]:
    """Return a figure's share of draws that hold the truth, and whether all are high enough."""
    shown, holds_all = [], True
    for holds, n in (count[name] for count in counts):
        # A share of the draws may be below by chance, not by more than three errors.
        error = 3 * np.sqrt(LEAST * (1 - LEAST) / max(1, n))
        holds_all &= n == 0 or holds / n >= LEAST - error
        shown.append(f"{holds / n:.3f}".rstrip("0").rstrip(".") if n else "none")
    return shown, holds_all


def tables(given: argparse.Namespace) -> Iterator[tuple[World, list[list[str]], bool]]:
    """Yield each world's table, and whether every interval of it holds often enough."""
    for world in given.worlds:
        counts = []
        for n_contexts in given.contexts:
            counts.append(covered(world, n_contexts, draws=given.draws, seed=given.seed))
            print(f"{world.name}, {n_contexts} contexts", file=sys.stderr, flush=True)
        lines, holds_all = [], True
        for name, true in truth(world).items():
            shown, holds = cells(counts, name)
            lines.append([name, f"{true:.3f}", *shown])
            holds_all &= holds
        yield world, lines, holds_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--contexts", type=int, nargs="+", default=list(CONTEXTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--world", type=int, nargs="+", default=range(len(WORLDS)))
    parser.add_argument("--markdown", action="store_true", help="tables for the documents")
    given = parser.parse_args(arguments)
    given.worlds = [WORLDS[place] for place in given.world]
    holds_all = True
    for world, lines, holds in tables(given):
        header = ["figure", "truth", *map(str, given.contexts)]
        print(f"\n{world.name}: share of {given.draws} draws whose interval holds the truth\n")
        if given.markdown:
            rule = ["---"] * len(header)
            print("\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *lines)), flush=True)
        else:
            print(text_table(header, lines), flush=True)
        holds_all &= holds
    return 0 if holds_all else 1


if __name__ == "__main__":
    sys.exit(main())
