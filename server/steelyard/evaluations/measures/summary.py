"""One evaluation summed up: the contract's metrics, and everything the detail shows.

Measures over all records, by decision, by outcome and by slice, reliability and coverage.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import UNSET

from steelyard.calibration.bins import N_BINS, FloatArray, bin_index, bin_totals, ece_from_totals
from steelyard.evaluations import wire
from steelyard.evaluations.measures.curves import coverage_curve, yes_curve
from steelyard.evaluations.measures.outcomes import (
    confusion_matrix,
    outcome_measures,
    outcome_names,
    outcome_table,
)
from steelyard.evaluations.measures.records import (
    IndexArray,
    RecordMeasures,
    Records,
    UnmeasurableError,
    measure_records,
)
from steelyard.evaluations.measures.sampling import measures_of, ratio_measures
from steelyard.proof.differences import Bootstrap, sum_by_context
from steelyard.wire.limits import MAX_OUTCOMES
from steelyard.wire.measures import ReliabilityRow

#: The most slices a table lists; the smaller ones are counted.
MAX_SLICES = 100

#: The most decisions a detail lists; those on fewer records are counted.
MAX_DECISIONS = 100

#: Upper ends of the buckets of context length, in tokens.
LENGTH_BUCKETS = (64, 256, 1024, 4096, 16384)


def metrics_of(
    records: Records,
    measures: RecordMeasures | None = None,
    *,
    latencies_ms: Sequence[float] | None = None,
) -> wire.EvaluationMetrics:
    """Return the contract's metrics of an evaluation.

    ``latencies_ms`` are server times of the requests sent, of which the median is reported. Raises
    ``UnmeasurableError`` when one is not finite.
    """
    measures = measure_records(records) if measures is None else measures
    metrics: dict[str, Any] = {}
    if "accuracy" in measures.values:
        hits = measures.values["accuracy"]
        for name in ("accuracy", "loss", "brier"):
            metrics[name] = _mean(measures.values[name])
        totals = bin_totals(measures.p_top, hits, np.ones(len(hits)))
        metrics["ece"] = float(ece_from_totals(totals))
    else:
        metrics["expected_reward"] = _mean(measures.values["expected_reward"])
    if latencies_ms:
        metrics["latency_ms"] = median_ms(latencies_ms)
    return wire.EvaluationMetrics(n=len(records), **metrics)


def median_ms(latencies_ms: Sequence[float]) -> float:
    """Return the median of server times; raise ``UnmeasurableError`` when one is not finite."""
    if not all(map(math.isfinite, latencies_ms)):
        raise UnmeasurableError("A latency is not finite; leave it out.")
    return float(statistics.median(latencies_ms))


def evaluation_detail(
    records: Records,
    *,
    slices: Mapping[str, Sequence[str | None]] | None = None,
    latencies_ms: Sequence[float] | None = None,
    input_tokens: int | None = None,
    bootstrap: Bootstrap | None = None,
) -> wire.EvaluationDetail:
    """Return everything measured on an evaluation's records.

    ``slices`` are names of properties to their value for each record, such as ``length_buckets``
    gives; records without a value (None) are in no slice. The kind of decision is always one. Raise
    ``UnmeasurableError`` when a property has not one value a record, or a latency is not finite.
    Each table of slices resamples every record once: a few tenths of a second for 10,000 records.
    """
    bootstrap = bootstrap or Bootstrap()
    measures = measure_records(records)
    codes = records.context_codes
    properties: dict[str, Sequence[str | None]] = {"kind": list(records.kinds), **(slices or {})}
    has_targets = records.supervision == "targets"
    by_decision = group_rows(records.decision_ids, largest_first=True)
    return wire.EvaluationDetail(
        metrics=metrics_of(records, measures, latencies_ms=latencies_ms),
        overall=measures_of(measures, codes, bootstrap),
        decisions=[
            decision_measures(records, measures, rows, bootstrap, has_curve=len(by_decision) > 1)
            for _, rows in by_decision[:MAX_DECISIONS]
        ],
        decisions_unlisted=max(0, len(by_decision) - MAX_DECISIONS),
        slices=[
            slice_table(records, measures, name, values, bootstrap)
            for name, values in properties.items()
        ],
        reliability=reliability_rows(measures, codes, bootstrap) if has_targets else UNSET,
        coverage_curve=coverage_curve(measures, codes, bootstrap),
        latency_ms=_latency(latencies_ms) if latencies_ms else None,
        input_tokens=input_tokens,
    )


def decision_measures(
    records: Records,
    measures: RecordMeasures,
    rows: IndexArray,
    bootstrap: Bootstrap,
    *,
    has_curve: bool = False,
) -> wire.DecisionMeasures:
    """Return the measures of one decision, of which ``rows`` are the records."""
    codes, own = records.context_codes[rows], measures.take(rows)
    kind = max(sorted(set(kinds := records.kinds[rows].tolist())), key=kinds.count)
    figures: dict[str, Any] = {}
    if records.supervision == "targets" and len(outcome_names(records, rows)) <= MAX_OUTCOMES:
        table = outcome_table(records, measures, rows)
        figures["outcomes"] = outcome_measures(table, bootstrap)
        figures["confusion"] = confusion_matrix(table)
        if kind == "binary" and "yes" in table.names:
            figures["yes_curve"] = yes_curve(table, bootstrap)
    if has_curve:
        figures["coverage_curve"] = coverage_curve(own, codes, bootstrap)
    return wire.DecisionMeasures(
        decision_id=records.decision_ids[rows[0]],
        kind=kind,
        metrics=measures_of(own, codes, bootstrap),
        **figures,
    )


def slice_table(
    records: Records,
    measures: RecordMeasures,
    by: str,
    values: Sequence[str | None],
    bootstrap: Bootstrap,
) -> wire.SliceTable:
    """Cut the records by one property and measure each slice; None is the value of those in none.

    Raises ``UnmeasurableError`` when there is not one value a record.
    """
    if len(values) != len(records):
        raise UnmeasurableError(
            f"{by} has {len(values)} values for {len(records)} records; give one each."
        )
    groups = group_rows(values, largest_first=True)
    return wire.SliceTable(
        by=by,
        slices=[
            wire.SliceMeasures(
                value=value,
                metrics=measures_of(measures.take(rows), records.context_codes[rows], bootstrap),
            )
            for value, rows in groups[:MAX_SLICES]
        ],
        unlisted=max(0, len(groups) - MAX_SLICES),
    )


def reliability_rows(
    measures: RecordMeasures, context_codes: IndexArray, bootstrap: Bootstrap
) -> list[ReliabilityRow]:
    """Return accuracy against promise in ten bins of top probability, empty ones included."""
    index = bin_index(measures.p_top)
    is_in_bin = (index[:, None] == np.arange(N_BINS)).astype(np.float64)
    hits = is_in_bin * measures.values["accuracy"][:, None]
    ratios = ratio_measures(
        sum_by_context(hits, context_codes),
        sum_by_context(is_in_bin, context_codes),
        bootstrap,
        are_proportions=[True] * N_BINS,
    )
    counts = is_in_bin.sum(axis=0)
    promised = is_in_bin.T @ measures.p_top
    return [
        ReliabilityRow(
            low=place / N_BINS,
            high=(place + 1) / N_BINS,
            n=int(counts[place]),
            mean_top_probability=float(promised[place] / counts[place]) if counts[place] else None,
            accuracy=ratios[place],
        )
        for place in range(N_BINS)
    ]


def group_rows(
    values: Iterable[Any], *, largest_first: bool = False
) -> list[tuple[str, IndexArray]]:
    """Return the rows of each value, by first appearance or the largest first and then by value.

    >>> [(value, rows.tolist()) for value, rows in group_rows(["b", "a", None, "b"])]
    [('b', [0, 3]), ('a', [1])]
    """
    rows_of: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        if value is not None:
            rows_of.setdefault(value, []).append(row)
    groups = [(value, np.array(rows, dtype=np.intp)) for value, rows in rows_of.items()]
    if largest_first:
        groups.sort(key=lambda group: (-len(group[1]), group[0]))
    return groups


def length_buckets(tokens: Sequence[int]) -> list[str]:
    """Return the bucket of each context's length in tokens, as a property to slice by.

    >>> length_buckets([3, 64, 65, 20_000])
    ['up to 64 tokens', 'up to 64 tokens', '65 to 256 tokens', 'over 16384 tokens']
    """
    first, last = LENGTH_BUCKETS[0], LENGTH_BUCKETS[-1]
    between = [f"{low + 1} to {high} tokens" for low, high in pairwise(LENGTH_BUCKETS)]
    names = [f"up to {first} tokens", *between, f"over {last} tokens"]
    return [names[index] for index in np.searchsorted(LENGTH_BUCKETS, tokens).tolist()]


def _latency(latencies_ms: Sequence[float]) -> wire.Latency:
    p50, p95 = np.quantile(np.asarray(latencies_ms, dtype=np.float64), (0.5, 0.95))
    return wire.Latency(p50=float(p50), p95=float(p95), n=len(latencies_ms))


def _mean(values: FloatArray) -> float:
    # A correctly rounded sum: the order of records changes nothing.
    return math.fsum(values.tolist()) / len(values)
