"""How often a certified threshold is wrong more often than it says, and how often one is found.

Made-up answers of known error; each draw is a dataset of its own. The table gives the share of draws
whose threshold misses its bound in the whole world, the share in which one was certified (the
power), and the share of decisions that it answers, beside the most that could be answered. Nothing
is trained and no weights are needed. Equal seeds give equal tables.

``python tests/benchmarks/certified.py [--draws 1000] [--contexts 200 1000] [--error 0.02 0.05 0.1]``

It exits with 1 where a bound is missed in more than 5 % of the draws, beyond chance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from quality_tables import text_table

from steelyard.calibration.certify import certify_threshold

Array = NDArray[np.float64]

CONFIDENCE = 0.95
#: Contexts that the true errors are taken from.
_LARGE = 300_000


@dataclass(frozen=True)
class World:
    """Answers whose probabilities are ``sureness`` times as sure as they should be.

    A context has from one to twice ``per_context`` less one decisions, which share their luck in
    half of the contexts.
    """

    name: str
    sureness: float = 1.0
    per_context: int = 1


WORLDS = (
    World("calibrated"),
    World("three times too sure", sureness=3.0),
    World("calibrated, four a context", per_context=4),
    World("three times too sure, four a context", sureness=3.0, per_context=4),
)


def draw(world: World, n_contexts: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return the top probability of each decision, whether it is right, and its context."""
    sizes = rng.integers(1, 2 * world.per_context, n_contexts)
    contexts = np.repeat(np.arange(n_contexts), sizes)
    n = len(contexts)
    evidence = np.abs(2.2 + 1.4 * rng.normal(size=n_contexts)[contexts] + 1.4 * rng.normal(size=n))
    luck = rng.random(n)
    if world.per_context > 1:
        shares = rng.random(n_contexts)[contexts] < 0.5
        luck = np.where(shares, rng.random(n_contexts)[contexts], luck)
    right = luck < 1 / (1 + np.exp(-evidence))
    shown = 1 / (1 + np.exp(-evidence * world.sureness))
    return shown, right.astype(np.float64), contexts.astype(np.float64)


@cache
def truth(world: World) -> tuple[Array, Array]:
    """Return thresholds of the whole world, highest first, and the error at or above each."""
    shown, right, _ = draw(world, _LARGE // world.per_context, np.random.default_rng(7))
    order = np.argsort(-shown)
    return shown[order], np.cumsum(1 - right[order]) / np.arange(1, len(order) + 1)


def measured(
    world: World, n_contexts: int, error: float, *, draws: int, seed: int = 0
) -> tuple[float, float, float, float]:
    """Return the shares of draws that missed and that certified, the share answered, and the most."""
    thresholds, errors = truth(world)
    missed, answered = 0, []
    for index in range(draws):
        rng = np.random.default_rng([seed, n_contexts, index])
        found = certify_threshold(*draw(world, n_contexts, rng), error=error, confidence=CONFIDENCE)
        if found.holds:
            n = int(np.searchsorted(-thresholds, -found.threshold, side="right"))
            missed += bool(errors[max(n, 1) - 1] > error)
            answered.append(n / len(thresholds))
    kept = np.flatnonzero(errors <= error)
    most = (int(kept[-1]) + 1) / len(errors) if len(kept) else 0.0
    return missed / draws, len(answered) / draws, float(np.mean(answered or [0.0])), most


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--contexts", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--error", type=float, nargs="+", default=[0.02, 0.05, 0.1])
    given = parser.parse_args(arguments)
    # A share may be above by chance, not by more than three errors.
    most = 1 - CONFIDENCE + 3 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / given.draws)
    lines, holds = [], True
    for world in WORLDS:
        for n_contexts in given.contexts:
            for error in given.error:
                figures = measured(world, n_contexts, error, draws=given.draws)
                holds &= figures[0] <= most
                cells = [f"{figure:.3f}" for figure in figures]
                lines.append([world.name, str(n_contexts), f"{error:g}", *cells])
    columns = ["answers", "contexts", "error", "missed", "certified", "answered", "most"]
    print(text_table(columns, lines))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
