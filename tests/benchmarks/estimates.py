"""Figures with intervals: a value of the sample and the same value of each bootstrap resample.

Estimates over the same contexts share their resamples, so that a difference or a ratio of two is
a paired comparison; estimates of different sources are resampled apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.calibration.bins import N_BINS, bin_columns, ece_from_totals
from steelyard.calibration.intervals import (
    Interval,
    percentile_interval,
    proportion_interval,
    resample_totals,
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its resamples.

    The interval is the basic one of a calibration error, which resampling biases upwards, and
    Wilson's of a proportion of ``n_trials`` independent decisions.
    """

    point: float
    resamples: np.ndarray
    is_ece: bool = False
    n_trials: int | None = None

    def interval(self) -> Interval:
        if self.n_trials:
            return proportion_interval(min(self.point, 1.0) * self.n_trials, self.n_trials)
        if self.is_ece:
            return basic_interval(self.point, self.resamples)
        return percentile_interval(self.resamples)

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.point - other.point, self.resamples - other.resamples)

    def __truediv__(self, other: Estimate) -> Estimate:
        return Estimate(self.point / other.point, self.resamples / other.resamples)


def basic_interval(point: float, statistics: np.ndarray) -> Interval:
    """Return the basic interval of a figure that resampling biases upwards, and is not negative.

    Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 5.2.
    """
    ends = percentile_interval(statistics)
    low, high = max(0.0, 2 * point - ends.high), 2 * point - ends.low
    return Interval(min(low, point), max(high, point), ends.level, "bootstrap-basic")


def mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    if len(estimates) == 1:
        return estimates[0]
    return Estimate(
        float(np.mean([one.point for one in estimates])),
        np.mean([one.resamples for one in estimates], axis=0),
        is_ece=all(one.is_ece for one in estimates),
    )


def mean_figures(several: Sequence[dict[str, Estimate]]) -> dict[str, Estimate]:
    """Return the mean of each figure that every one of them has."""
    shared = [name for name in several[0] if all(name in figures for figures in several)]
    return {name: mean_estimate([figures[name] for figures in several]) for name in shared}


class Sample:
    """The rows of one source: collects columns, then resamples all of them at once, by context."""

    def __init__(self, contexts: Sequence[str]) -> None:
        self._contexts = np.unique(np.asarray(contexts, dtype=object), return_inverse=True)[1]
        self._is_distinct = len(set(contexts)) == len(contexts)
        self._columns: list[np.ndarray] = []
        self._width = 0
        self._wanted: dict[tuple[str, ...], tuple[str, slice, slice, int]] = {}

    def add_mean(self, key: tuple[str, ...], chosen: np.ndarray, values: np.ndarray) -> None:
        """Ask for the mean of one value for each of the chosen rows."""
        self._add(key, "mean", chosen, np.asarray(values, dtype=np.float64)[:, None])

    def add_share(self, key: tuple[str, ...], chosen: np.ndarray, hits: np.ndarray) -> None:
        """Ask for the share of the chosen rows that hit."""
        self._add(key, "share", chosen, np.asarray(hits, dtype=np.float64)[:, None])

    def add_ece(
        self, key: tuple[str, ...], chosen: np.ndarray, tops: np.ndarray, hits: np.ndarray
    ) -> None:
        """Ask for the calibration error of the chosen rows."""
        self._add(key, "ece", chosen, bin_columns(tops, hits))

    def estimates(self, *, n_resamples: int, seed: int) -> dict[tuple[str, ...], Estimate]:
        """Return every figure asked for, all on the same resamples."""
        matrix = np.concatenate(self._columns, axis=1)
        totals = resample_totals(matrix, self._contexts, n_resamples=n_resamples, seed=seed)
        totals = np.concatenate([matrix.sum(axis=0)[None], totals])
        found = {}
        for key, (form, counts, sums, n_trials) in self._wanted.items():
            if form == "ece":
                statistics = ece_from_totals(totals[:, sums].reshape(-1, N_BINS, 3))
            else:
                statistics = totals[:, sums.start] / totals[:, counts.start]
            is_share = form == "share" and self._is_distinct
            found[key] = Estimate(
                float(statistics[0]), statistics[1:], form == "ece", n_trials if is_share else None
            )
        return found

    def _add(self, key: tuple[str, ...], form: str, chosen: np.ndarray, values: np.ndarray) -> None:
        placed = np.zeros((len(self._contexts), 1 + values.shape[1]))
        placed[chosen, 0] = 1.0
        placed[chosen, 1:] = values
        start = self._width
        self._columns.append(placed)
        self._width += placed.shape[1]
        self._wanted[key] = (
            form,
            slice(start, start + 1),
            slice(start + 1, self._width),
            len(values),
        )
