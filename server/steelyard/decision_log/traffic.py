"""Figures of live decisions: how many, how often they abstained, how often they were right.

Sums over the stored answers of a window, with 95 % intervals; measures on datasets, which also know
the losses, are in ``steelyard.evaluations.measures.summary``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.bins import N_BINS, FloatArray, bin_totals
from steelyard.calibration.intervals import proportion_interval
from steelyard.decision_log import wire
from steelyard.decisions.wire import ABSTAIN
from steelyard.wire.filling import filled
from steelyard.wire.measures import Measure, ReliabilityRow

#: The most groups of a summary; the smaller ones are counted.
MAX_GROUPS = 100
_LEVEL = 0.95
_REACH = NormalDist().inv_cdf(0.975)
#: Probability from which a context more likely than not leaves a decision unsaid.
_MORE_LIKELY = 0.5

IntArray: TypeAlias = NDArray[np.intp]
#: Decisions that are summed up together: a model's name, its version and a decision's id.
GroupKey: TypeAlias = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of sums, a decision a place; ``seen`` is 1 with feedback, ``right`` 1 if right."""

    bucket: IntArray
    group: IntArray
    p_top: FloatArray
    abstained: FloatArray
    seen: FloatArray
    right: FloatArray


class Traffic:
    """Adds up answers as they are read."""

    def __init__(self, since: float, until: float, bucket_s: int) -> None:
        self.since, self.until, self.bucket_s = since, until, bucket_s
        self._answers: list[tuple[float, float]] = []
        self._decisions: list[tuple[float, int, float, bool, bool, bool]] = []
        self._groups: dict[GroupKey, int] = {}
        #: Decisions whose model knows whether the context says, and those of which it more likely does not.
        self._n_known, self._n_unstated = 0, 0

    def group_of(self, key: GroupKey) -> int:
        """Return the number under which decisions are added that belong together."""
        return self._groups.setdefault(key, len(self._groups))

    def add_answer(self, at: float, total_ms: float | None) -> None:
        """Count an answer."""
        self._answers.append((at, math.nan if total_ms is None else total_ms))

    def add(
        self, group: int, at: float, p_top: float, *, abstained: bool, is_right: bool | None
    ) -> None:
        """Count a decision of an answer."""
        seen = is_right is not None
        self._decisions.append((at, group, p_top, abstained, seen, bool(is_right)))

    def add_unstated(self, probability: float) -> None:
        """Count a decision whose model knows how likely it is that the context does not say."""
        self._n_known += 1
        self._n_unstated += probability > _MORE_LIKELY

    def summary(self, server: wire.ServerErrors | None) -> wire.DecisionSummary:
        """Return the figures of the added answers."""
        columns = np.array(self._decisions, dtype=np.float64).reshape(-1, 6).T
        answers = np.array(self._answers, dtype=np.float64).reshape(-1, 2)
        first = math.floor(self.since / self.bucket_s)
        n_buckets = max(1, math.ceil(self.until / self.bucket_s) - first)

        def bucket_of(at: FloatArray) -> IntArray:
            places = np.floor(at / self.bucket_s).astype(np.intp) - first
            return np.clip(places, 0, n_buckets - 1)

        decisions = _Columns(bucket_of(columns[0]), columns[1].astype(np.intp), *columns[2:])
        seen = decisions.seen > 0
        return wire.DecisionSummary(
            since=self.since,
            until=self.until,
            bucket_s=self.bucket_s,
            server=server,
            answers=len(answers),
            decisions=len(decisions.seen),
            abstain_rate=share(int(decisions.abstained.sum()), len(decisions.seen)),
            unstated_rate=share(self._n_unstated, self._n_known),
            feedback_share=share(int(decisions.seen.sum()), len(decisions.seen)),
            accuracy=share(int(decisions.right.sum()), int(decisions.seen.sum())),
            reliability=_reliability(decisions.p_top[seen], decisions.right[seen]),
            top_probabilities=_top_probabilities(decisions),
            latency_p50_ms=quantile(answers[:, 1], 0.5),
            latency_p95_ms=quantile(answers[:, 1], 0.95),
            buckets=_buckets(
                decisions, bucket_of(answers[:, 0]), first * self.bucket_s, self.bucket_s, n_buckets
            ),
            groups=_groups(decisions, list(self._groups)),
            groups_left_out=max(0, len(self._groups) - MAX_GROUPS),
        )


def _buckets(
    decisions: _Columns, answers: IntArray, first: int, bucket_s: int, n: int
) -> list[wire.DecisionBucket]:
    """Return every bucket in order of time, empty ones included."""
    sums = [
        np.bincount(decisions.bucket, of, n) for of in (None, decisions.abstained, decisions.seen)
    ]
    columns = [np.bincount(answers, None, n), *sums]
    return [
        wire.DecisionBucket(
            start=float(first + place * bucket_s),
            answers=n_answers,
            decisions=n_decisions,
            abstained=n_abstained,
            with_feedback=n_seen,
        )
        for place, (n_answers, n_decisions, n_abstained, n_seen) in enumerate(
            np.stack(columns, axis=1).astype(int).tolist()
        )
    ]


def _place(group: tuple[GroupKey, list[int]]) -> tuple[int, str, str, str]:
    """Return the sort key of groups, since answers are read in any order."""
    (model, version, decision), (n, *_) = group
    return -n, model, version or "", decision


def _groups(decisions: _Columns, keys: list[GroupKey]) -> list[wire.DecisionGroup]:
    """Return the groups with the most decisions, ``MAX_GROUPS`` at most."""
    weights = (None, decisions.abstained, decisions.seen, decisions.right)
    columns = [np.bincount(decisions.group, of, len(keys)) for of in weights]
    counts = np.stack(columns, axis=1).astype(int).tolist()
    most = sorted(zip(keys, counts, strict=True), key=_place)
    return [
        wire.DecisionGroup(
            model=model,
            version=version,
            decision=decision,
            decisions=n,
            abstain_rate=proportion_of(n_abstained, n),
            feedback_share=proportion_of(n_seen, n),
            accuracy=share(n_right, n_seen),
        )
        for (model, version, decision), (n, n_abstained, n_seen, n_right) in most[:MAX_GROUPS]
    ]


def _reliability(p_top: FloatArray, hits: FloatArray) -> list[ReliabilityRow]:
    """Return accuracy in ten bins of top probability, empty ones included."""
    return [
        ReliabilityRow(
            low=place / N_BINS,
            high=(place + 1) / N_BINS,
            n=int(n),
            mean_top_probability=float(promised / n) if n else None,
            accuracy=share(int(right), int(n)),
        )
        for place, (n, promised, right) in enumerate(
            bin_totals(p_top, hits, np.ones(len(hits))).tolist()
        )
    ]


def _top_probabilities(decisions: _Columns) -> list[wire.TopProbabilityRow]:
    """Return the hundredths of top probability that have decisions."""
    # What is 0.07 in floating point is in the hundredth that ends there.
    places = np.maximum(np.ceil(np.round(decisions.p_top * 100, 9)).astype(np.intp), 1) - 1
    weights = (None, decisions.seen, decisions.seen - decisions.right)
    columns = [np.bincount(places, of, 100) for of in weights]
    return [
        wire.TopProbabilityRow(
            low=place / 100, high=(place + 1) / 100, n=n, with_feedback=n_seen, wrong=n_wrong
        )
        for place, (n, n_seen, n_wrong) in enumerate(np.stack(columns, axis=1).astype(int).tolist())
        if n
    ]


def is_right(top: str, outcome: str | Mapping[str, Any]) -> bool:
    """Return whether the top outcome came true."""
    if isinstance(outcome, str):
        return outcome == top
    return max(outcome, key=lambda name: float(outcome[name])) == top


def did_abstain(action: str, top: str) -> bool:
    """Return whether a decision abstained."""
    # One dialect of requests allows an outcome of this name; where it is the top, it was chosen.
    return action == ABSTAIN != top


def logged_result(result: Any, feedback: Any) -> wire.LoggedResult:
    """Return a decision of a stored answer with what came true of it."""
    abstained = did_abstain(result.action, result.top)
    return filled(wire.LoggedResult, result, abstained=abstained, feedback=feedback)


def share(n_successes: int, n: int) -> Measure | None:
    """Return a share with the exact 95 % interval; None of nothing."""
    return proportion_of(n_successes, n) if n else None


def quantile(values: FloatArray, q: float) -> Measure | None:
    """Return a quantile and its interval of order statistics (Conover 1999, section 3.2), without NaN."""
    ordered = np.sort(values[np.isfinite(values)])
    n = len(ordered)
    if n == 0:
        return None
    reach = NormalDist().inv_cdf(0.5 + _LEVEL / 2) * math.sqrt(n * q * (1 - q))
    low, high = math.ceil(n * q - reach), math.ceil(n * q + reach)  # ranks from 1
    has_interval = low >= 1 and high <= n
    return Measure(
        value=float(ordered[math.ceil(n * q) - 1]),
        low=float(ordered[low - 1]) if has_interval else None,
        high=float(ordered[high - 1]) if has_interval else None,
        n=n,
    )


def proportion_of(n_successes: float, n: int) -> Measure:
    """Return a share of ``n``, one at least, with its interval; a success may count in part."""
    interval = proportion_interval(n_successes, n, level=_LEVEL)
    return Measure(value=n_successes / n, low=interval.low, high=interval.high, n=n)


def mean_of(values: Sequence[float], most: float = math.inf) -> Measure:
    """Return the mean of values from 0 to ``most``, one at least, with its interval where there are two."""
    n, mean = len(values), float(np.mean(values))
    if n == 1:
        return Measure(value=mean, low=None, high=None, n=n)
    reach = _REACH * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Measure(value=mean, low=max(mean - reach, 0.0), high=min(mean + reach, most), n=n)
