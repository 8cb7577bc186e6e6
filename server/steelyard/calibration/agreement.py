"""How far labellers agree, teachers or people: Krippendorff's alpha of a decision, shares of rows.

Intervals are over rows: a resample draws rows with all that their labellers said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from steelyard.calibration.bins import FloatArray
from steelyard.calibration.intervals import (
    percentile_interval,
    proportion_interval,
    resample_totals,
)
from steelyard.wire.measures import Measure


class DecisionVotes:
    """What was said of one decision, of all rows that ask it."""

    def __init__(self) -> None:
        self._votes: list[list[int]] = []
        self._places: dict[str, int] = {}
        self._is_ordinal = True

    def __len__(self) -> int:
        return len(self._votes)

    def add(self, outcomes: Iterable[str], labels: Iterable[str], *, is_ordinal: bool) -> None:
        """Add the labels that a row was given, each one of its outcomes."""
        self._is_ordinal &= is_ordinal
        for name in outcomes:
            self._places.setdefault(name, len(self._places))
        self._votes.append([self._places[label] for label in labels])

    def alpha(self) -> Measure | None:
        """Return Krippendorff's alpha; see ``krippendorff_alpha``."""
        return krippendorff_alpha(self._votes, len(self._places), is_ordinal=self._is_ordinal)

    def share(self) -> Measure | None:
        """Return the share of the rows with two labels or more whose labels are all the same."""
        paired = [votes for votes in self._votes if len(votes) > 1]
        return share(sum(len(set(votes)) == 1 for votes in paired), len(paired))


def krippendorff_alpha(
    votes: Sequence[Sequence[int]], n_outcomes: int, *, is_ordinal: bool = False
) -> Measure | None:
    """Return alpha of one decision, 1 where labellers agree and 0 where they do as by chance.

    Parameters
    ----------
    votes : sequence of sequences of int
        For each row the outcomes that its labellers chose, by place; one row may have fewer votes
        than another.
    is_ordinal : bool, default False
        Whether two outcomes differ by the square of the levels between them; otherwise two differ
        or do not.

    Returns
    -------
    Measure or None
        ``n`` counts the rows with two votes or more. None where there are none of them, or where
        all their votes are for one outcome, of which nothing can be said.

    References
    ----------
    Krippendorff, "Content Analysis", 4th edition, 2019, chapter 12. Hayes and Krippendorff,
    "Answering the Call for a Standard Reliability Measure for Coding Data", Communication Methods
    and Measures, 2007.
    """
    paired = [row for row in votes if len(row) > 1]
    if not paired:
        return None
    levels = np.arange(n_outcomes, dtype=np.float64)
    between = np.abs(levels[:, None] - levels[None, :])
    apart = between**2 if is_ordinal else (between > 0).astype(np.float64)
    counts = np.zeros((len(paired), n_outcomes))
    for place, row in enumerate(paired):
        np.add.at(counts[place], list(row), 1.0)
    seen = ((counts @ apart) * counts).sum(axis=1) / (counts.sum(axis=1) - 1)
    sums = np.column_stack([seen, counts])
    value = _alphas(sums.sum(axis=0)[None, :], apart)[0]
    if np.isnan(value):
        return None
    # Resamples of one outcome alone say nothing and are left out.
    drawn = _alphas(resample_totals(sums), apart)
    interval = percentile_interval(drawn[~np.isnan(drawn)])
    low, high = min(interval.low, value), max(interval.high, value)
    return Measure(value=float(value), low=float(low), high=float(high), n=len(paired))


def _alphas(totals: FloatArray, apart: FloatArray) -> FloatArray:
    """Return alpha of sums of disagreement and votes, a row each; NaN where votes never differ."""
    seen, votes = totals[:, 0], totals[:, 1:]
    by_chance = ((votes @ apart) * votes).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alphas = 1 - (votes.sum(axis=1) - 1) * seen / by_chance
    return np.asarray(np.where(by_chance > 0, alphas, np.nan), dtype=np.float64)


def share(count: int, n: int) -> Measure | None:
    """Return a share of rows with Clopper and Pearson's interval; ``None`` without rows."""
    if n == 0:
        return None
    interval = proportion_interval(count, n)
    return Measure(value=count / n, low=interval.low, high=interval.high, n=n)
