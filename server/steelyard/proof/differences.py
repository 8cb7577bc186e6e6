"""Differences of two models on the same decisions, and their intervals over contexts.

Shared difficulty, hard contexts above all, cancels out in a difference, and the decisions of a context
stand or fall together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration import intervals
from steelyard.calibration.bins import FloatArray

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How to resample; equal seeds over equally many contexts draw the same resamples."""

    n_resamples: int = intervals.N_RESAMPLES
    seed: int = 0

    def totals(self, sums: FloatArray) -> FloatArray:
        """Resample sums by context; see ``steelyard.calibration.intervals.resample_totals``."""
        return intervals.resample_totals(sums, n_resamples=self.n_resamples, seed=self.seed)


class MeanChange(NamedTuple):
    """A mean before and after, and its change with a 95 % interval; over one context without."""

    before: float
    after: float
    change: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, eq=False)
class Paired:
    """Values of the same decisions by two models, (n_decisions, n_figures), and each one's context."""

    before: FloatArray
    after: FloatArray
    contexts: NDArray[np.generic]

    @cached_property
    def sums(self) -> FloatArray:
        """The differences, and in the last column their number, by context."""
        columns = np.hstack([self.after - self.before, np.ones((len(self.before), 1))])
        return sum_by_context(columns, self.contexts)

    def differences(
        self, lows: Sequence[float], highs: Sequence[float], bootstrap: Bootstrap
    ) -> list[MeanChange]:
        """Return each figure's change, a context allowed for that was not seen.

        ``lows`` and ``highs`` are the least and the greatest change that a decision could make.
        """
        least, greatest = intervals.ratio_intervals(
            self.sums[:, :-1],
            np.repeat(self.sums[:, -1:], self.before.shape[1], axis=1),
            lows=lows,
            highs=highs,
            level=LEVEL,
            n_resamples=bootstrap.n_resamples,
            seed=bootstrap.seed,
        )
        return [
            self._difference(column, low, high)
            for column, (low, high) in enumerate(zip(least, greatest, strict=True))
        ]

    def percentile_difference(self, bootstrap: Bootstrap) -> MeanChange:
        """Return the first figure's change with percentiles of the bootstrap over contexts."""
        low = high = np.nan
        if len(self.sums) > 1:
            interval = intervals.percentile_interval(self.resampled(bootstrap), level=LEVEL)
            low, high = interval.low, interval.high
        return self._difference(0, low, high)

    def resampled(self, bootstrap: Bootstrap) -> FloatArray:
        """Return the first figure's mean change in each resample of contexts."""
        drawn = bootstrap.totals(self.sums)
        means: FloatArray = drawn[:, 0] / drawn[:, -1]
        return means

    def _difference(self, column: int, low: float, high: float) -> MeanChange:
        before, after = float(self.before[:, column].mean()), float(self.after[:, column].mean())
        least, greatest = (None if np.isnan(end) else float(end) for end in (low, high))
        return MeanChange(before, after, after - before, least, greatest, len(self.before))


def sum_by_context(columns: FloatArray, contexts: NDArray[np.generic]) -> FloatArray:
    """Sum columns over the records of each context, in the order of the contexts' keys."""
    _, index = np.unique(contexts, return_inverse=True)
    return np.stack([np.bincount(index, column) for column in columns.T], axis=1)
