"""Bins of top probability: the sums under calibration error and reliability tables."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Bins of the calibration error, of equal width over [0, 1].
N_BINS = 10

FloatArray: TypeAlias = NDArray[np.float64]


def bin_index(top_probabilities: ArrayLike, n_bins: int = N_BINS) -> NDArray[np.intp]:
    """Return the bin of each top probability: bin i holds those in (i / n_bins, (i + 1) / n_bins].

    0 falls in the first bin.
    """
    inner_edges = np.arange(1, n_bins) / n_bins
    return np.searchsorted(inner_edges, np.asarray(top_probabilities, dtype=np.float64))


def bin_totals(
    top_probabilities: FloatArray,
    hits: FloatArray,
    weights: FloatArray,
    n_bins: int = N_BINS,
) -> FloatArray:
    """Sum weight, top probability and hits within each bin of top probability: (n_bins, 3)."""
    index = bin_index(top_probabilities, n_bins)
    columns = (weights, weights * top_probabilities, weights * hits)
    return np.stack([np.bincount(index, column, n_bins) for column in columns], axis=1)


def bin_columns(
    top_probabilities: FloatArray, hits: FloatArray, n_bins: int = N_BINS
) -> FloatArray:
    """Return each decision's own bin totals, a row of columns that ``resample_totals`` can sum.

    Summed over decisions and reshaped to (n_bins, 3), these are ``bin_totals``.
    """
    n = len(top_probabilities)
    columns = np.zeros((n, n_bins, 3))
    columns[np.arange(n), bin_index(top_probabilities, n_bins)] = np.stack(
        [np.ones(n), top_probabilities, hits], axis=1
    )
    return columns.reshape(n, 3 * n_bins)


def ece_from_totals(totals: FloatArray) -> FloatArray:
    """Return the calibration error of each of some bin totals of shape (..., n_bins, 3)."""
    gaps = np.abs(totals[..., 1] - totals[..., 2]).sum(axis=-1)
    return np.asarray(gaps / totals[..., 0].sum(axis=-1), dtype=np.float64)
