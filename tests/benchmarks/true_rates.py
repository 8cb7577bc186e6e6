"""True shares by few checks: coverage and width in made-up worlds whose truth is known.

``python tests/benchmarks/true_rates.py``: a model says 84 % where 71 % is true, well and badly; half
of the time another mixture (drift); an outcome of .5 %, one of 2 % of which the model sees nothing, and
one of 6 % that it misses; a model that errs in 3 of 100. Checks are drawn of all answers, or by strata
of the probability.
"""

from __future__ import annotations

from collections.abc import Callable

import click
import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.intervals import proportion_interval
from steelyard.calibration.true_rates import (
    N_STRATA,
    STRATUM_EDGES,
    Stratum,
    TrueRate,
    strata_in_turn,
    stratified_rate,
    true_rate,
)

World = Callable[[np.random.Generator, int], tuple[NDArray[np.float64], NDArray[np.float64]]]


def _logistic(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-evidence))


def good(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the answers of a model that sees most of the truth, and the truth: .71."""
    truth = (rng.random(n) < 0.71).astype(float)
    return _logistic(np.where(truth, 3.1, 0.3) + rng.normal(0, 1.3, n)), truth


def blind(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the answers of a model that sees nothing."""
    return rng.beta(4.2, 0.8, n), (rng.random(n) < 0.71).astype(float)


def drift(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a week whose second half is another mixture than its first."""
    truth = (rng.random(n) < np.where(np.arange(n) < n // 2, 0.5, 0.9)).astype(float)
    return np.clip(rng.normal(0.84, 0.1, n) + 0.1 * (truth - 0.7), 0, 1), truth


def rare(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an outcome that is true of .5 %."""
    truth = (rng.random(n) < 0.005).astype(float)
    return _logistic(np.where(truth, 1.5, -3.0) + rng.normal(0, 1.5, n)), truth


def rare_and_blind(
    rng: np.random.Generator, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an outcome that is true of 2 %, and the answers of a model that sees nothing of it."""
    return _logistic(rng.normal(-3, 1.5, n)), (rng.random(n) < 0.02).astype(float)


def missed(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an outcome that is true of 6 %, all of them answers of which the model says below .1."""
    said = _logistic(rng.normal(-3, 1.5, n))
    is_low = said < STRATUM_EDGES[0]
    return said, (is_low & (rng.random(n) < 0.06 / is_low.mean())).astype(float)


def nearly_right(
    rng: np.random.Generator, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a model that is sure and errs in 3 of 100."""
    truth = rng.random(n) < 0.3
    said = np.where(rng.random(n) < 0.03, ~truth, truth)
    return np.where(said, 0.97, 0.03), truth.astype(float)


WORLDS: dict[str, World] = {
    "good": good,
    "blind": blind,
    "drift": drift,
    "rare": rare,
    "rare, blind": rare_and_blind,
    "missed": missed,
    "nearly right": nearly_right,
}


def by_strata(
    rng: np.random.Generator, said: NDArray[np.float64], truth: NDArray[np.float64], n: int
) -> TrueRate | None:
    """Return the rate by as many checks, drawn by strata."""
    places = np.digitize(said, STRATUM_EDGES)
    sizes = np.bincount(places, minlength=N_STRATA)
    means = np.bincount(places, said, N_STRATA) / np.maximum(sizes, 1)
    numbers = np.bincount(
        list(strata_in_turn(sizes.tolist(), means.tolist(), n)), minlength=N_STRATA
    )
    strata = []
    for place in range(N_STRATA):
        drawn = rng.permutation(np.flatnonzero(places == place))[: numbers[place]]
        strata.append(Stratum(float(means[place]), int(sizes[place]), said[drawn], truth[drawn]))
    return stratified_rate(strata)


@click.command()
@click.option("--worlds", default=1_000, show_default=True, help="Draws of each kind.")
@click.option("--answers", default=12_400, show_default=True)
@click.option("--checks", default=(60, 120, 400), multiple=True, show_default=True)
@click.option("--world", "names", type=click.Choice(list(WORLDS)), multiple=True)
def main(worlds: int, answers: int, checks: tuple[int, ...], names: tuple[str, ...]) -> None:
    """Print coverage and mean width beside those of the checks alone."""
    click.echo(
        "world          checks   covered   width   by strata   width   checks alone   width   ratios"
    )
    for name in names or WORLDS:
        for n in checks:
            rng = np.random.default_rng(n)
            hits, widths = np.zeros((worlds, 3)), np.zeros((worlds, 3))
            for place in range(worlds):
                said, truth = WORLDS[name](rng, answers)
                drawn = rng.permutation(answers)[:n]
                rate = true_rate(float(said.mean()), answers, said[drawn], truth[drawn])
                stratified = by_strata(rng, said, truth, n)
                alone = proportion_interval(float(truth[drawn].sum()), n)
                assert rate is not None
                assert stratified is not None
                for at, one in enumerate((rate, stratified, alone)):
                    hits[place, at] = one.low <= truth.mean() <= one.high
                    widths[place, at] = one.high - one.low
            covered, width = hits.mean(0), widths.mean(0)
            click.echo(
                f"{name:14s} {n:6d}   {covered[0]:7.3f}  {width[0]:6.3f}   {covered[1]:9.3f}"
                f"  {width[1]:6.3f}   {covered[2]:12.3f}  {width[2]:6.3f}"
                f"   {width[0] / width[2]:.2f}, {width[1] / width[2]:.2f}"
            )


if __name__ == "__main__":
    main()
