"""Figures of live decisions: how many, how often they abstained, how often they were right.

Here: sums over the stored answers of a window, told with their 95 % intervals. Not here: reading
the answers (``steelyard.services.decision_log``), measures on datasets, which also know the losses
(``steelyard.evaluation.summary``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from steelyard.calibration.bins import N_BINS, bin_totals
from steelyard.calibration.intervals import wilson_interval
from steelyard.wire.decision_log import DecisionBucket, DecisionGroup
from steelyard.wire.evaluations import Measure, ReliabilityRow

#: The most groups that are told; the smaller ones are counted.
MAX_GROUPS = 100
_LEVEL = 0.95


@dataclass(slots=True)
class _Sums:
    """What is counted of a bucket, a group or everything."""

    answers: int = 0
    decisions: int = 0
    abstained: int = 0
    observed: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Which decisions are told together: those of one id by one model."""

    model: str
    version: str | None
    decision: str


@dataclass(slots=True)
class Traffic:
    """Adds up answers as they are read.

    Parameters
    ----------
    since, until : float
        The window, in Unix seconds.
    bucket_s : int
        Seconds of a bucket.
    """

    since: float
    until: float
    bucket_s: int
    total: _Sums = field(default_factory=_Sums)
    _buckets: dict[int, _Sums] = field(default_factory=dict)
    _groups: dict[GroupKey, _Sums] = field(default_factory=dict)
    _latencies: list[float] = field(default_factory=list)
    _p_tops: list[float] = field(default_factory=list)
    _hits: list[bool] = field(default_factory=list)

    def add_answer(self, at: float, total_ms: float | None) -> None:
        """Count an answer.

        Parameters
        ----------
        at : float
            Unix seconds.
        total_ms : float or None
            Milliseconds that it took, where they are known.
        """
        self.total.answers += 1
        self._bucket(at).answers += 1
        if total_ms is not None and math.isfinite(total_ms):
            self._latencies.append(total_ms)

    def add(
        self, key: GroupKey, at: float, p_top: float, *, abstained: bool, is_right: bool | None
    ) -> None:
        """Count a decision of an answer.

        Parameters
        ----------
        key : GroupKey
            Whom it is told with.
        at : float
            Unix seconds.
        p_top : float
            The top probability, 0 to 1.
        abstained : bool
        is_right : bool or None
            Whether the top outcome came true; None while nobody has told.
        """
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Sums()
        for sums in (self.total, self._bucket(at), group):
            sums.decisions += 1
            sums.abstained += abstained
            if is_right is not None:
                sums.observed += 1
                sums.right += is_right
        if is_right is not None:
            self._p_tops.append(p_top)
            self._hits.append(is_right)

    def buckets(self) -> list[DecisionBucket]:
        """Give every bucket of the window in order of time, empty ones included."""
        first = math.floor(self.since / self.bucket_s)
        last = max(first, math.ceil(self.until / self.bucket_s) - 1)
        none = _Sums()
        told = []
        for place in range(first, last + 1):
            sums = self._buckets.get(place, none)
            told.append(
                DecisionBucket(
                    start=float(place * self.bucket_s),
                    answers=sums.answers,
                    decisions=sums.decisions,
                    abstained=sums.abstained,
                    with_feedback=sums.observed,
                )
            )
        return told

    def groups(self) -> list[DecisionGroup]:
        """Give the groups with the most decisions, ``MAX_GROUPS`` at most."""
        ordered = sorted(
            self._groups.items(),
            key=lambda item: (-item[1].decisions, item[0].model, item[0].decision),
        )
        return [
            DecisionGroup(
                model=key.model,
                version=key.version,
                decision=key.decision,
                decisions=sums.decisions,
                abstain_rate=_of(sums.abstained, sums.decisions),
                feedback_share=_of(sums.observed, sums.decisions),
                accuracy=share(sums.right, sums.observed),
            )
            for key, sums in ordered[:MAX_GROUPS]
        ]

    @property
    def n_groups_left_out(self) -> int:
        """Groups that ``groups`` does not give."""
        return max(0, len(self._groups) - MAX_GROUPS)

    def reliability(self) -> list[ReliabilityRow]:
        """Give accuracy on feedback in ten bins of top probability, empty ones included."""
        hits = np.asarray(self._hits, dtype=np.float64)
        totals = bin_totals(np.asarray(self._p_tops, np.float64), hits, np.ones(len(hits)))
        return [
            ReliabilityRow(
                low=place / N_BINS,
                high=(place + 1) / N_BINS,
                n=int(n),
                mean_top_probability=float(promised / n) if n else None,
                accuracy=share(int(right), int(n)),
            )
            for place, (n, promised, right) in enumerate(totals)
        ]

    def latency(self, q: float) -> Measure | None:
        """Give a quantile of the answers' milliseconds; None without any.

        Parameters
        ----------
        q : float
            Above 0 and below 1.
        """
        return quantile(np.asarray(self._latencies, np.float64), q)

    def _bucket(self, at: float) -> _Sums:
        place = int(at // self.bucket_s)
        sums = self._buckets.get(place)
        if sums is None:
            sums = self._buckets[place] = _Sums()
        return sums


def is_right(top: str, outcome: str | Mapping[str, Any]) -> bool:
    """Say whether the top outcome came true.

    Parameters
    ----------
    top : str
        The outcome with the largest probability.
    outcome : str or mapping of str to float
        What came true, or probabilities where that is not certain; then the likeliest counts, as
        evaluations count, and of equals the first.
    """
    if isinstance(outcome, str):
        return outcome == top
    return max(outcome, key=lambda name: float(outcome[name])) == top


def share(n_successes: int, n: int) -> Measure | None:
    """Give a share with Wilson's 95 % interval; None of nothing.

    Examples
    --------
    >>> share(0, 0) is None, share(9, 10).value
    (True, 0.9)
    """
    return _of(n_successes, n) if n else None


def quantile(values: np.ndarray[Any, np.dtype[np.float64]], q: float) -> Measure | None:
    """Give a quantile with a 95 % interval that no form of the distribution is assumed for.

    Parameters
    ----------
    values : float64 array of shape (n,)
    q : float
        Above 0 and below 1.

    Returns
    -------
    Measure or None
        The interval is between two order statistics, and missing where n is too small for them.

    References
    ----------
    Conover, "Practical Nonparametric Statistics", 1999, section 3.2.
    """
    n = len(values)
    if n == 0:
        return None
    ordered = np.sort(values)
    reach = NormalDist().inv_cdf(0.5 + _LEVEL / 2) * math.sqrt(n * q * (1 - q))
    low, high = math.ceil(n * q - reach), math.ceil(n * q + reach)  # ranks from 1
    has_interval = low >= 1 and high <= n
    return Measure(
        value=float(ordered[math.ceil(n * q) - 1]),
        low=float(ordered[low - 1]) if has_interval else None,
        high=float(ordered[high - 1]) if has_interval else None,
        n=n,
    )


def _of(n_successes: int, n: int) -> Measure:
    interval = wilson_interval(n_successes, n, level=_LEVEL)
    return Measure(value=n_successes / n, low=interval.low, high=interval.high, n=n)
