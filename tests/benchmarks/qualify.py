"""Qualifications of judges whose agreement is known: how often they pass, and how often intervals hold.

``python tests/benchmarks/qualify.py``: yes/no decisions of a judge that agrees with people in a set share
and says so with calibrated probabilities, drawn anew for each qualification.
"""

from __future__ import annotations

import click
import numpy as np

from steelyard.calibration.temperature import TemperatureTable
from steelyard.models.qualifying import Figures, figures_of
from steelyard.serving.connected.calibrating import LabelledAnswers


def qualify(rng: np.random.Generator, n: int, agreement: float) -> tuple[Figures, float]:
    """Return a judge's figures on ``n`` labels, and the log loss that it has on average."""
    # How sure it is: half of its answers more than the mean, half less, and right as often as it says.
    spread = min(0.08, 1 - agreement - 1e-3)
    sure = np.where(rng.random(n) < 0.5, agreement - spread, agreement + spread)
    top = rng.integers(2, size=n)
    label = np.where(rng.random(n) < sure, top, 1 - top)
    logits = np.zeros((n, 2))
    logits[np.arange(n), top] = np.log(sure / (1 - sure))
    loss = float(
        np.mean(
            [
                -p * np.log(p) - (1 - p) * np.log(1 - p)
                for p in agreement + spread * np.array([-1, 1])
            ]
        )
    )
    scored = LabelledAnswers(["binary"] * n, list(logits), list(np.eye(2)[label]))
    return figures_of(scored, TemperatureTable()), loss


@click.command()
@click.option("--draws", default=1_000, show_default=True)
@click.option("--floor", default=0.85, show_default=True)
def main(draws: int, floor: float) -> None:
    """Print the share that passes, and the coverage of both intervals."""
    click.echo("agrees   labels   passes   agreement covered   log loss covered")
    for agreement in (0.75, 0.80, 0.85, 0.90, 0.95):
        for n in (50, 200, 500):
            rng = np.random.default_rng(n)
            passed, of_agreement, of_loss = 0, 0, 0
            for _ in range(draws):
                figures, loss = qualify(rng, n, agreement)
                passed += figures.agreement.value >= floor
                of_agreement += figures.agreement.low <= agreement <= figures.agreement.high
                of_loss += figures.log_loss.low <= loss <= figures.log_loss.high
            click.echo(
                f"{agreement:6.2f}   {n:6d}   {passed / draws:6.3f}   {of_agreement / draws:17.3f}"
                f"   {of_loss / draws:16.3f}"
            )


if __name__ == "__main__":
    main()
