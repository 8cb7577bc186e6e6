"""Scored decisions, and the measures of each.

Loss and Brier score are those of ``steelyard.calibration.metrics``; means over records and their
intervals are in ``steelyard.evaluations.measures.summary``.

Records differ in how many outcomes they have. Their numbers lie end to end in one array, and are
measured in dense batches of records with equally many outcomes, so that a decision of 255 outcomes
does not pad the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration import metrics
from steelyard.calibration.bins import FloatArray
from steelyard.decisions.wire import Kind
from steelyard.evaluations.wire import JobRecord

IndexArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Supervision: TypeAlias = Literal["targets", "rewards"]
#: The least and the greatest that a figure can be.
Range: TypeAlias = tuple[float, float]

UNBOUNDED: Range = (-math.inf, math.inf)

#: How far from 1 a distribution may sum: stored as float32 it is about 1e-6 off.
SUM_TOLERANCE = 1e-4

#: Numbers in one dense batch (8 bytes each).
_BATCH_NUMBERS = 4_000_000

_OF_TARGETS = ("accuracy", "loss", "brier")
_OF_REWARDS = ("expected_reward", "scaled_reward", "picked_best")
#: The measures that are proportions: each record's is 0 or 1.
PROPORTIONS = frozenset({"accuracy", "picked_best"})


class UnmeasurableError(ValueError):
    """Records of which no honest figure can be given: a missing number, a NaN, no pair."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Scored decisions as n columns; make them with ``records_from_columns``.

    ``context_codes``, (n,), are equal where contexts are, in the order of their names. Record i has
    the outcomes ``outcome_lists[outcome_codes[i]]``, and the probabilities and labels (targets or
    rewards, as ``supervision`` says) from ``offsets[i]`` to ``offsets[i + 1]``.
    """

    supervision: Supervision
    contexts: NDArray[np.object_]
    decision_ids: NDArray[np.object_]
    kinds: NDArray[np.object_]
    context_codes: IndexArray
    outcome_lists: tuple[tuple[str, ...], ...]
    outcome_codes: IndexArray
    offsets: IndexArray
    probabilities: FloatArray
    labels: FloatArray

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def sizes(self) -> IndexArray:
        """How many outcomes each record has."""
        return np.diff(self.offsets)

    def outcomes_of(self, index: int) -> tuple[str, ...]:
        """Return a record's outcomes."""
        return self.outcome_lists[int(self.outcome_codes[index])]

    def probabilities_of(self, index: int) -> FloatArray:
        """Return a record's probabilities, in outcome order."""
        return self.probabilities[self.offsets[index] : self.offsets[index + 1]]

    def labels_of(self, index: int) -> FloatArray:
        """Return a record's targets or rewards, in outcome order."""
        return self.labels[self.offsets[index] : self.offsets[index + 1]]

    def batches(self) -> Iterator[tuple[IndexArray, FloatArray, FloatArray]]:
        """Yield batches of equally many outcomes: which records, their probabilities and labels."""
        sizes = self.sizes
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            for start in range(0, len(rows), step := max(1, _BATCH_NUMBERS // int(size))):
                chosen = rows[start : start + step]
                places = self.offsets[chosen, None] + np.arange(size)
                yield chosen, self.probabilities[places], self.labels[places]


@dataclass(frozen=True, slots=True, eq=False)
class RecordMeasures:
    """The measures of each of n records.

    ``values`` has for targets ``accuracy``, ``loss`` and ``brier``, for rewards
    ``expected_reward``, ``scaled_reward`` and ``picked_best``; ``counted`` says which records each
    measure counts: all, but the last two leave out records whose outcomes all earn the same, and
    have 0 there. ``top`` indexes the largest probability, ``p_top``, and ``truth`` the largest
    label, the first on a tie. ``p_least`` is the smallest probability, and ``rewards`` the least and
    the greatest reward that any outcome earns; None with targets.
    """

    values: dict[str, FloatArray]
    counted: dict[str, BoolArray]
    top: IndexArray
    p_top: FloatArray
    truth: IndexArray
    p_least: FloatArray
    rewards: Range | None = None

    def range_of(self, name: str) -> Range | None:
        """Return the least and the greatest that a measure of answers like these can be.

        A loss has no bound of its own, but the greatest possible loss of these answers.
        """
        if name == "loss":
            return 0.0, float(-np.log(max(float(self.p_least.min()), metrics.LEAST_PROBABILITY)))
        if name == "brier":
            miss = 1 - self.p_least
            return 0.0, float((miss * (miss + self.p_top)).max())
        if name == "expected_reward":
            return self.rewards
        return 0.0, 1.0

    @property
    def right(self) -> str:
        """Name of the measure that says whether the top outcome is right."""
        return "accuracy" if "accuracy" in self.values else "picked_best"

    def take(self, rows: IndexArray) -> RecordMeasures:
        """Return the measures of some of the records, in the order asked for."""
        return RecordMeasures(
            {name: column[rows] for name, column in self.values.items()},
            {name: column[rows] for name, column in self.counted.items()},
            self.top[rows],
            self.p_top[rows],
            self.truth[rows],
            self.p_least[rows],
            self.rewards,
        )


def records_from_columns(
    *,
    contexts: Sequence[str],
    decision_ids: Sequence[str],
    kinds: Sequence[Kind],
    outcomes: Sequence[Sequence[str]],
    probabilities: Sequence[Sequence[float] | FloatArray],
    labels: Sequence[Sequence[float] | FloatArray],
    supervision: Supervision,
) -> Records:
    """Check columns of equal length and lay their numbers end to end.

    Probabilities and labels are in outcome order, as many as there are outcomes. Raise
    ``UnmeasurableError`` when there is no record, columns or vectors differ in length, a number is
    missing or not finite, a probability or target is outside 0 and 1, or a distribution does not
    sum to 1.

    >>> records = records_from_columns(
    ...     contexts=["c"],
    ...     decision_ids=["d"],
    ...     kinds=["binary"],
    ...     outcomes=[("yes", "no")],
    ...     probabilities=[[0.8, 0.2]],
    ...     labels=[[1, 0]],
    ...     supervision="targets",
    ... )
    >>> float(measure_records(records).values["brier"][0].round(6))
    0.08
    """
    n = len(contexts)
    columns = (decision_ids, kinds, outcomes, probabilities, labels)
    if n == 0 or any(len(column) != n for column in columns):
        raise UnmeasurableError(
            f"There are {n} contexts and columns of {[len(column) for column in columns]} "
            "values; give one of each for every record, and at least one record."
        )
    sizes = np.fromiter(map(len, outcomes), dtype=np.intp, count=n)
    if sizes.min() < 1:
        raise UnmeasurableError("A record has no outcome; leave it out.")
    flat = _flatten(probabilities, sizes, "probabilities")
    truth = _flatten(labels, sizes, supervision)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    _check_distributions(flat, offsets, "probabilities")
    if supervision == "targets":
        _check_distributions(truth, offsets, "targets")
    lists: dict[tuple[str, ...], int] = {}
    codes = [lists.setdefault(tuple(names), len(lists)) for names in outcomes]
    names_of_contexts = _objects(contexts)
    return Records(
        supervision=supervision,
        contexts=names_of_contexts,
        decision_ids=_objects(decision_ids),
        kinds=_objects(kinds),
        context_codes=_codes(names_of_contexts),
        outcome_lists=tuple(lists),
        outcome_codes=np.array(codes, dtype=np.intp),
        offsets=offsets,
        probabilities=flat,
        labels=truth,
    )


def measure_records(records: Records) -> RecordMeasures:
    """Measure every record by itself; holds about 4 million numbers at a time.

    Loss is cross-entropy in nats with probabilities below 1e-6 read as that; Brier is the squared
    error summed over outcomes; accuracy is 1 where the top outcome is the target's largest.
    ``expected_reward`` is the probability-weighted reward, ``scaled_reward`` the same with the
    worst outcome at 0 and the best at 1, and ``picked_best`` 1 where the top outcome earns the best
    reward.
    """
    n = len(records)
    is_reward = records.supervision == "rewards"
    names = _OF_REWARDS if is_reward else _OF_TARGETS
    values = {name: np.zeros(n) for name in names}
    is_counted = np.ones(n, dtype=bool)
    top, truth = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    p_top, p_least = np.zeros(n), np.zeros(n)
    for rows, probabilities, labels in records.batches():
        top[rows], truth[rows] = probabilities.argmax(axis=1), labels.argmax(axis=1)
        p_top[rows], p_least[rows] = probabilities.max(axis=1), probabilities.min(axis=1)
        if is_reward:
            expected, scaled, is_best, has_range = _reward_measures(probabilities, labels)
            columns = (expected, scaled, is_best)
            is_counted[rows] = has_range
        else:
            columns = (
                metrics.decision_hits(probabilities, labels),
                metrics.decision_log_losses(probabilities, labels),
                metrics.decision_brier_scores(probabilities, labels),
            )
        for name, column in zip(names, columns, strict=True):
            values[name][rows] = column
    counted = dict.fromkeys(names, is_counted)
    if is_reward:
        counted["expected_reward"] = np.ones(n, dtype=bool)
    earned = (float(records.labels.min()), float(records.labels.max())) if is_reward and n else None
    return RecordMeasures(values, counted, top, p_top, truth, p_least, earned)


def job_records(
    records: Records,
    measures: RecordMeasures | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
) -> list[JobRecord]:
    """Return records as the wire shows them: all, or those of a slice."""
    measures = measure_records(records) if measures is None else measures
    return [_job_record(records, measures, index) for index in range(len(records))[start:stop]]


def _job_record(records: Records, measures: RecordMeasures, index: int) -> JobRecord:
    names = records.outcomes_of(index)
    labels = dict(zip(names, records.labels_of(index).tolist(), strict=True))
    shown: dict[str, Any] = {
        name: float(column[index])
        for name, column in measures.values.items()
        if measures.counted[name][index]
    }
    shown[records.supervision] = labels
    return JobRecord(
        context_sha256=records.contexts[index],
        decision_id=records.decision_ids[index],
        probabilities=dict(zip(names, records.probabilities_of(index).tolist(), strict=True)),
        **shown,
    )


def _reward_measures(
    probabilities: FloatArray, rewards: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return expected and scaled reward, 1 where the top earns the best, and where rewards differ."""
    # Halves, so that the distance of two rewards stays a number however large they are.
    worst, best = rewards.min(axis=1) / 2, rewards.max(axis=1) / 2
    has_range = best - worst > 0
    span = np.where(has_range, best - worst, 1.0)
    scaled = np.einsum("ij,ij->i", probabilities, (rewards / 2 - worst[:, None]) / span[:, None])
    scaled = np.where(has_range, np.clip(scaled, 0.0, 1.0), 0.0)
    # Halves here too; held within the rewards, against rounding.
    expected = np.clip(np.einsum("ij,ij->i", probabilities, rewards / 2), worst, best) * 2
    earned = np.take_along_axis(rewards, probabilities.argmax(axis=1)[:, None], axis=1)[:, 0]
    is_best = np.where(has_range, earned == rewards.max(axis=1), 0.0).astype(np.float64)
    return expected, scaled, is_best, has_range


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    column = np.empty(len(values), dtype=np.object_)
    column[:] = list(values)
    return column


def _codes(values: NDArray[np.object_]) -> IndexArray:
    _, codes = np.unique(values.astype(np.str_), return_inverse=True)
    return np.asarray(codes, dtype=np.intp)


def _flatten(
    vectors: Sequence[Sequence[float] | FloatArray], sizes: IndexArray, name: str
) -> FloatArray:
    try:
        lengths = np.fromiter(map(len, vectors), dtype=np.intp, count=len(sizes))
        flat = np.fromiter(chain.from_iterable(vectors), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UnmeasurableError(
            f"A record's {name} are missing or not numbers; score it again."
        ) from None
    if not np.array_equal(lengths, sizes):
        row = int(np.flatnonzero(lengths != sizes)[0])
        raise UnmeasurableError(
            f"Record {row} has {lengths[row]} {name} for {sizes[row]} outcomes; give one each."
        )
    if not np.isfinite(flat).all():
        raise UnmeasurableError(
            f"A number of a record's {name} is missing or not finite; score it again."
        )
    return flat


def _check_distributions(flat: FloatArray, offsets: IndexArray, name: str) -> None:
    sums = np.add.reduceat(flat, offsets[:-1])
    if flat.min() < 0 or flat.max() > 1 + 1e-6 or np.abs(sums - 1).max() > SUM_TOLERANCE:
        raise UnmeasurableError(
            f"The {name} of every record must lie within 0 and 1 and sum to 1; "
            f"they sum to between {sums.min():.6g} and {sums.max():.6g}."
        )
