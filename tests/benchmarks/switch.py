"""Switches judged without labels, of models whose disagreement is known: what a threshold keeps, and how often it holds.

``python tests/benchmarks/switch.py``: yes/no answers of two models. How often they differ falls with the
candidate's top probability; a good one differs less the surer it is, a bad one at every probability alike.
"""

from __future__ import annotations

import click
import numpy as np

from steelyard.named.comparing import Compared
from steelyard.named.switching import switches_of

#: How often answers differ at a top probability.
MODELS = {
    "good": lambda sure: 0.5 * (1 - sure) ** 1.5,
    "fair": lambda sure: 0.9 * (1 - sure),
    "bad": lambda sure: np.full_like(sure, 0.08),
}


def draw(rng: np.random.Generator, n: int, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the candidate's top probabilities of ``n`` texts, and whether the other model differs."""
    sure = 0.5 + 0.5 * rng.beta(4, 1, size=n)
    return sure, rng.random(n) < MODELS[model](sure)


def compared(sure: np.ndarray, differs: np.ndarray) -> list[Compared]:
    """Return answers as a comparison has them."""
    return [
        Compared(
            context=str(place),
            decision="d",
            kind="binary",
            outcomes=["yes", "no"],
            probabilities=([0.1, 0.9] if other else [0.9, 0.1], [float(p), 1 - float(p)]),
            actions=("", ""),
        )
        for place, (p, other) in enumerate(zip(sure, differs, strict=True))
    ]


@click.command()
@click.option("--draws", default=1_000, show_default=True)
@click.option("--budget", default=0.02, show_default=True)
def main(draws: int, budget: float) -> None:
    """Print how often a threshold is found, keeps to the budget, and what it keeps."""
    click.echo("model   texts   found   within the budget   alone   alone at best")
    for model, differs in MODELS.items():
        sure, _ = draw(np.random.default_rng(0), 1_000_000, model)
        sure = np.sort(sure)[::-1]
        means = np.cumsum(differs(sure)) / np.arange(1, len(sure) + 1)
        within = np.flatnonzero(means <= budget)
        best = 0.0 if not len(within) else (within[-1] + 1) / len(sure)
        for n in (200, 500, 1_000):
            rng = np.random.default_rng(n)
            thresholds, alone = [], []
            for _ in range(draws):
                [switch] = switches_of(compared(*draw(rng, n, model)), budget)
                alone.append(switch.alone)
                if switch.threshold is not None:
                    thresholds.append(switch.threshold)
            places = np.searchsorted(-sure, -np.array(thresholds), side="right") - 1
            held = 1 - (means[places] > budget).sum() / draws
            click.echo(
                f"{model:5}   {n:5d}   {len(thresholds) / draws:5.3f}   {held:17.3f}   "
                f"{np.mean(alone):5.3f}   {best:13.3f}"
            )


if __name__ == "__main__":
    main()
