"""How far labellers agree, teachers or people: Krippendorff's alpha of a decision, shares of rows.

Intervals are over rows with all that their labellers said, and allow for a row that was not seen:
``tests/benchmarks/coverage.py`` measures how often they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from steelyard.calibration.bins import FloatArray
from steelyard.calibration.intervals import proportion_interval, weighed_totals
from steelyard.wire.measures import Measure

LEVEL = 0.95


class DecisionVotes:
    """The votes on one decision, over all rows that ask it."""

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

    ``votes`` are for each row the outcomes that its labellers chose, by place. Ordinal outcomes
    differ by the square of the levels between them; others differ or do not.

    ``n`` counts the rows with two votes or more. None where there are none of them, or where all
    their votes are for one outcome, of which nothing can be said. Without an interval over one row.
    The interval weighs rows at random and adds one that was not seen: for the lower end one whose
    votes are as far apart as can be, for the upper end one whose votes agree, with the other votes
    as seen, or those that bring the end further out.

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
    low, high = (None, None) if len(paired) == 1 else _alpha_ends(sums, apart, float(value))
    return Measure(value=float(value), low=low, high=high, n=len(paired))


def _alpha_ends(sums: FloatArray, apart: FloatArray, value: float) -> tuple[float, float]:
    drawn, unseen = weighed_totals(sums)
    mean = sums[:, 1:].mean(axis=0)
    size = float(mean.sum())
    # Half of the votes against the other half.
    worst = float(apart.max()) * size**2 / 2 / (size - 1)
    rarest, commonest = (size * np.eye(len(mean))[at] for at in (mean.argmin(), mean.argmax()))

    def quantile(disagreement: float, votes: FloatArray, at: float) -> float:
        totals = drawn + unseen[:, None] * np.array([disagreement, *votes])
        totals *= (sums[:, 1:].sum() / totals[:, 1:].sum(axis=1))[:, None]
        alphas = _alphas(totals, apart)
        # Those of one outcome alone say nothing and are left out.
        return float(np.quantile(alphas[~np.isnan(alphas)], at))

    low = min(quantile(worst, votes, (1 - LEVEL) / 2) for votes in (mean, commonest))
    high = max(quantile(0.0, votes, (1 + LEVEL) / 2) for votes in (mean, rarest))
    return min(low, value), max(high, value)


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
