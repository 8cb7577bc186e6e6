"""Ratios of sums over decisions, with intervals that know which decisions share a context.

Every mean, proportion and F1 of an evaluation gets its 95 % interval here. Which, and why:

- A proportion whose decisions are each on a context of their own: Wilson's. It is exact enough from
  a handful of decisions on, and of some width where all agree (Brown, Cai and DasGupta, "Interval
  Estimation for a Binomial Proportion", Statistical Science, 2001).
- Everything else: the percentile bootstrap over contexts, 2,000 resamples, since decisions on one
  context stand or fall together (Efron and Tibshirani, 1993; Field and Welsh, "Bootstrapping
  Clustered Data", Journal of the Royal Statistical Society B, 2007). Resamples that leave nothing
  to divide by are left out.
- A proportion whose decisions share contexts and whose bootstrap has no width, as that of 0 or 1:
  Wilson's with each context as one trial, which is the widest reading of them.
- A mean over one context has no interval, nor has one over fewer than ten that are all alike: the
  bootstrap would promise that the next is like them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.calibration.bins import N_BINS, FloatArray, bin_columns, ece_from_totals
from steelyard.calibration.intervals import (
    N_RESAMPLES,
    basic_interval,
    percentile_interval,
    resample_totals,
    wilson_interval,
)
from steelyard.evaluations.measures.records import PROPORTIONS, IndexArray, RecordMeasures
from steelyard.evaluations.wire import Measures
from steelyard.wire.measures import Measure

LEVEL = 0.95
#: Contexts of which a bootstrap without any width is believed.
_ENOUGH_CONTEXTS = 10


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How to resample; equal seeds over equally many contexts draw the same resamples."""

    n_resamples: int = N_RESAMPLES
    seed: int = 0

    def totals(self, sums: FloatArray) -> FloatArray:
        """Resample sums by context; see ``steelyard.calibration.intervals.resample_totals``."""
        return resample_totals(sums, n_resamples=self.n_resamples, seed=self.seed)


def sum_by_context(columns: FloatArray, context_codes: IndexArray) -> FloatArray:
    """Sum columns over the records of each context, in the order of the codes."""
    _, index = np.unique(context_codes, return_inverse=True)
    return np.stack([np.bincount(index, column) for column in columns.T], axis=1)


def ratio_measures(
    numerators: FloatArray,
    denominators: FloatArray,
    bootstrap: Bootstrap,
    *,
    are_proportions: Sequence[bool],
    counts: FloatArray | None = None,
) -> list[Measure | None]:
    """Return ratios of sums over contexts with their intervals; None where those divide by 0.

    Numerators and denominators are sums by context, (n_contexts, n_ratios); a ratio is a proportion
    where its numerator counts some of what its denominator counts. ``counts``, (n_ratios,), is how
    many decisions each rests on: the sums of the denominators by default.
    """
    totals, bases = numerators.sum(axis=0), denominators.sum(axis=0)
    counts = bases if counts is None else counts
    found: list[Measure | None] = [None] * len(totals)
    drawn: list[int] = []
    for column in np.flatnonzero(bases > 0).tolist():
        counted = denominators[:, column]
        total, base = float(totals[column]), float(bases[column])
        n_contexts = int((counted > 0).sum())
        value, n = total / base, round(float(counts[column]))
        if are_proportions[column] and (counted.max() <= 1 or total in {0.0, base}):
            interval = wilson_interval(value * n_contexts, n_contexts, level=LEVEL)
            found[column] = Measure(value=value, low=interval.low, high=interval.high, n=n)
        else:
            found[column] = Measure(value=value, low=None, high=None, n=n)
            if n_contexts > 1:
                drawn.append(column)
    if drawn:
        _add_percentiles(found, drawn, numerators, denominators, bootstrap)
    for column in drawn:
        n_contexts = int((denominators[:, column] > 0).sum())
        if (measure := found[column]) is not None:
            found[column] = _with_floor(measure, n_contexts, is_proportion=are_proportions[column])
    return found


def measures_of(
    measures: RecordMeasures, context_codes: IndexArray, bootstrap: Bootstrap
) -> Measures:
    """Return every measure of one record or more, each with its n and interval."""
    names = list(measures.values)
    numerators = np.stack([measures.values[name] for name in names], axis=1)
    denominators = np.stack([measures.counted[name] for name in names], axis=1).astype(np.float64)
    sums = sum_by_context(np.hstack([numerators, denominators]), context_codes)
    tops, bases = sums[:, : len(names)], sums[:, len(names) :]
    ratios = ratio_measures(
        tops, bases, bootstrap, are_proportions=[name in PROPORTIONS for name in names]
    )
    found = {
        name: measure for name, measure in zip(names, ratios, strict=True) if measure is not None
    }
    if "accuracy" in measures.values:
        found["ece"] = _ece_measure(measures, context_codes, bootstrap)
    return Measures(n=len(measures.top), contexts=len(sums), **found)


def _ece_measure(
    measures: RecordMeasures, context_codes: IndexArray, bootstrap: Bootstrap
) -> Measure:
    columns = bin_columns(measures.p_top, measures.values["accuracy"])
    sums = sum_by_context(columns, context_codes)
    value = float(ece_from_totals(sums.sum(axis=0).reshape(N_BINS, 3)))
    if len(sums) < 2:
        return Measure(value=value, low=None, high=None, n=len(columns))
    drawn = ece_from_totals(bootstrap.totals(sums).reshape(-1, N_BINS, 3))
    interval = basic_interval(value, drawn, level=LEVEL)
    measure = Measure(value=value, low=interval.low, high=interval.high, n=len(columns))
    return _with_floor(measure, len(sums), is_proportion=False)


def _with_floor(measure: Measure, n_contexts: int, *, is_proportion: bool) -> Measure:
    """Return a measure whose interval claims no certainty that so few contexts cannot give."""
    if measure.low is None or measure.low != measure.high:
        return measure
    if is_proportion:
        interval = wilson_interval(measure.value * n_contexts, n_contexts, level=LEVEL)
        return Measure(value=measure.value, low=interval.low, high=interval.high, n=measure.n)
    if n_contexts >= _ENOUGH_CONTEXTS:
        return measure
    return Measure(value=measure.value, low=None, high=None, n=measure.n)


def _add_percentiles(
    found: list[Measure | None],
    columns: list[int],
    numerators: FloatArray,
    denominators: FloatArray,
    bootstrap: Bootstrap,
) -> None:
    drawn = bootstrap.totals(np.hstack([numerators[:, columns], denominators[:, columns]]))
    tops, bases = drawn[:, : len(columns)], drawn[:, len(columns) :]
    for place, column in enumerate(columns):
        measure = found[column]
        has_base = bases[:, place] > 0
        if measure is None or not has_base.any():
            continue
        interval = percentile_interval(tops[has_base, place] / bases[has_base, place], level=LEVEL)
        # Held to the value on both sides: resamples without a base may have been left out.
        low, high = min(interval.low, measure.value), max(interval.high, measure.value)
        found[column] = Measure(value=measure.value, low=low, high=high, n=measure.n)
