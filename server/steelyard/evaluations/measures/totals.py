"""The metrics of records that come some at a time, so that any number of them can be measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from steelyard.calibration.bins import N_BINS, bin_totals, ece_from_totals
from steelyard.evaluations.measures.records import Records, measure_records
from steelyard.evaluations.measures.summary import median_ms
from steelyard.evaluations.wire import EvaluationMetrics

#: The means among an evaluation's metrics.
_MEANS = ("accuracy", "loss", "brier", "expected_reward")


class RecordTotals:
    """Sums over records, of which some are held at a time."""

    def __init__(self) -> None:
        self._n = 0
        self._sums: dict[str, list[float]] = {}
        self._bins = np.zeros((N_BINS, 3))

    def add(self, records: Records) -> None:
        """Add records; their order changes nothing, but how they are grouped may in the last bit."""
        measures = measure_records(records)
        self._n += len(records)
        for name, values in measures.values.items():
            self._sums.setdefault(name, []).append(math.fsum(values.tolist()))
        hits = measures.values.get("accuracy")
        if hits is not None:
            self._bins += bin_totals(measures.p_top, hits, np.ones(len(hits)))

    def metrics(self, *, latencies_ms: Sequence[float] | None = None) -> EvaluationMetrics:
        """Return the metrics of all records; as ``summary.metrics_of`` of them together."""
        metrics = {
            name: math.fsum(sums) / self._n for name, sums in self._sums.items() if name in _MEANS
        }
        if "accuracy" in metrics:
            metrics["ece"] = float(ece_from_totals(self._bins))
        if latencies_ms:
            metrics["latency_ms"] = median_ms(latencies_ms)
        return EvaluationMetrics(n=self._n, **metrics)
