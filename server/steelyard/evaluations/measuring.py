"""The figures of an evaluation from its file of predictions, whatever its length.

Metrics are sums, and are those of every decision. Intervals, curves and slices resample decisions,
and hold some kilobytes of each: of a long file they rest on a sample of its contexts.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.calibration.intervals import mean_interval
from steelyard.evaluations import predictions as frames
from steelyard.evaluations.measures.records import Supervision
from steelyard.evaluations.measures.summary import evaluation_detail
from steelyard.evaluations.measures.totals import RecordTotals
from steelyard.evaluations.prediction_columns import effort_of, records_of
from steelyard.evaluations.rows import slices_of
from steelyard.evaluations.wire import EvaluationDetail
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.measures import Measure

#: Decisions that are resampled at most: of as many on contexts of their own, an interval of a share
#: is at most 0.5 % wide.
MAX_MEASURED = 200_000

#: What the rows of a method are labelled with.
SUPERVISION: dict[str, Supervision] = {"sft": "targets", "reward": "rewards"}


def measure_file(
    store: FrameStore, sha256: str, supervision: Supervision, most: int = MAX_MEASURED
) -> EvaluationDetail:
    """Return everything measured on a file's decisions; ``UnmeasurableError`` without an honest figure."""
    sample = frames.read_sample(store, sha256, most)
    effort = effort_of(sample.table)
    detail = evaluation_detail(
        records_of(sample.table, supervision),
        slices=slices_of(sample.table),
        latencies_ms=effort.latencies_ms,
        input_tokens=effort.input_tokens,
    )
    detail = msgspec.structs.replace(
        detail,
        unstated_rate=_unstated_rate(sample.table),
        decided_by=_step_shares(sample.table),
    )
    if sample.share is None:
        return detail
    totals, tokens = RecordTotals(), 0
    is_counted = True
    # Each group has whole rows, since a partition is written together.
    for table in frames.read_groups(store, sha256):
        totals.add(records_of(table, supervision))
        of_group = effort_of(table).input_tokens
        is_counted = is_counted and of_group is not None
        tokens += of_group or 0
    return msgspec.structs.replace(
        detail,
        metrics=totals.metrics(latencies_ms=effort.latencies_ms),
        input_tokens=tokens if is_counted else None,
        sample=sample.share,
    )


def _unstated_rate(table: pa.Table) -> Measure | None:
    """Return how often a context more likely than not does not say; None where no model knows."""
    known = table.select(["unstated", "context_sha256"]).drop_null()
    return _share(known["unstated"].to_numpy() > 0.5, known) if len(known) else None


def _step_shares(table: pa.Table) -> dict[str, Measure]:
    """Return the share of decisions that each step decided, the largest first."""
    known = table.select(["decided_by", "context_sha256"]).drop_null()
    steps = known["decided_by"].to_pylist()
    codes = np.array(steps)
    return {step: _share(codes == step, known) for step, _ in Counter(steps).most_common()}


def _share(is_so: NDArray[np.bool_], table: pa.Table) -> Measure:
    """Return a share of decisions, with its interval over contexts."""
    values = is_so.astype(float)
    contexts = table["context_sha256"].to_pylist()
    within = mean_interval(values, clusters=contexts, least=0.0, most=1.0)
    return Measure(
        value=float(values.mean()),
        low=None if within is None else within.low,
        high=None if within is None else within.high,
        n=len(values),
    )
