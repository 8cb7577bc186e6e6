"""Ratios of sums over decisions, with intervals that know which decisions share a context.

Every mean, proportion, F1 and change of an evaluation gets its 95 % interval here, by
``steelyard.calibration.intervals.ratio_intervals``: contexts are weighed at random, and one that
was not seen is added, at the least and at the greatest that the figure can be. It holds at least as
often as it says, from two contexts on and for figures near the end of their range
(``tests/benchmarks/coverage.py``). Over one context there is no interval: nothing says how the next
would differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.calibration.bins import N_BINS, FloatArray, bin_columns, ece_from_totals
from steelyard.calibration.intervals import (
    proportion_interval,
    ratio_intervals,
)
from steelyard.calibration.reliability import ece_ends
from steelyard.evaluations.measures import records
from steelyard.evaluations.wire import Measures
from steelyard.proof.differences import LEVEL, Bootstrap, sum_by_context
from steelyard.wire.measures import Measure


def ratio_measures(
    numerators: FloatArray,
    denominators: FloatArray,
    bootstrap: Bootstrap,
    *,
    are_proportions: Sequence[bool],
    ranges: Sequence[records.Range | None] | None = None,
    counts: FloatArray | None = None,
) -> list[Measure | None]:
    """Return ratios of sums over contexts with their intervals; None where those divide by 0.

    Numerators and denominators are sums by context, (n_contexts, n_ratios); a ratio is a proportion
    where its numerator counts a part of its denominator. ``ranges`` are the least and the greatest that
    each ratio can be: 0 and 1 for a proportion, and not known by default for others. ``counts``,
    (n_ratios,), is how many decisions each rests on: the sums of the denominators by default.
    """
    totals, bases = numerators.sum(axis=0), denominators.sum(axis=0)
    counts = bases if counts is None else counts
    known = [
        given or ((0.0, 1.0) if is_proportion else records.UNBOUNDED)
        for given, is_proportion in zip(
            ranges or [None] * len(totals), are_proportions, strict=True
        )
    ]
    low, high = np.full(len(totals), np.nan), np.full(len(totals), np.nan)
    # One trial a context: the exact interval, which no drawing comes nearer to.
    is_single = np.array(are_proportions) & (denominators.max(axis=0, initial=0) <= 1) & (bases > 0)
    for column in np.flatnonzero(is_single).tolist():
        exact = proportion_interval(
            min(float(totals[column]), float(bases[column])), float(bases[column]), level=LEVEL
        )
        low[column], high[column] = exact.low, exact.high
    drawn = np.flatnonzero(~is_single & (bases > 0))
    if drawn.size:
        low[drawn], high[drawn] = ratio_intervals(
            numerators[:, drawn],
            denominators[:, drawn],
            lows=[known[column][0] for column in drawn.tolist()],
            highs=[known[column][1] for column in drawn.tolist()],
            level=LEVEL,
            n_resamples=bootstrap.n_resamples,
            seed=bootstrap.seed,
        )
    return [
        Measure(
            value=float(totals[column] / bases[column]),
            low=None if np.isnan(low[column]) else float(low[column]),
            high=None if np.isnan(high[column]) else float(high[column]),
            n=round(float(counts[column])),
        )
        if bases[column] > 0
        else None
        for column in range(len(totals))
    ]


def measures_of(
    measures: records.RecordMeasures, context_codes: records.IndexArray, bootstrap: Bootstrap
) -> Measures:
    """Return every measure of one record or more, each with its n and interval."""
    names = list(measures.values)
    numerators = np.stack([measures.values[name] for name in names], axis=1)
    denominators = np.stack([measures.counted[name] for name in names], axis=1).astype(np.float64)
    sums = sum_by_context(np.hstack([numerators, denominators]), context_codes)
    tops, bases = sums[:, : len(names)], sums[:, len(names) :]
    ratios = ratio_measures(
        tops,
        bases,
        bootstrap,
        are_proportions=[name in records.PROPORTIONS for name in names],
        ranges=[measures.range_of(name) for name in names],
    )
    figures = {
        name: measure for name, measure in zip(names, ratios, strict=True) if measure is not None
    }
    if "accuracy" in measures.values:
        figures["ece"] = _ece_measure(measures, context_codes, bootstrap)
    return Measures(n=len(measures.top), contexts=len(sums), **figures)


def _ece_measure(
    measures: records.RecordMeasures, context_codes: records.IndexArray, bootstrap: Bootstrap
) -> Measure:
    hits = measures.values["accuracy"]
    totals = bin_columns(measures.p_top, hits).sum(axis=0).reshape(N_BINS, 3)
    interval = ece_ends(
        measures.p_top,
        hits,
        context_codes,
        level=LEVEL,
        n_resamples=bootstrap.n_resamples,
        seed=bootstrap.seed,
    )
    return Measure(
        value=float(ece_from_totals(totals)),
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        n=len(hits),
    )
