"""True shares of a window's answers, by those that were checked in the order that chance made.

Checks from the beginning of that order, without a gap, are a fair sample. So are checks in each stratum
of an outcome's probability: there the order is the same, with the other strata left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeAlias

import msgspec
import numpy as np
from sqlalchemy import Connection

from steelyard.calibration.true_rates import (
    FEWEST_OF_STRATUM,
    N_STRATA,
    Stratum,
    TrueRate,
    corrected_rate,
    strata_in_turn,
    stratified_rate,
    stratum_of,
    true_rate,
)
from steelyard.decision_log.answers import StoredAnswers
from steelyard.decision_log.store import (
    AnswerCriteria,
    ShortRow,
    count_observed_by_name,
    feedback_of_answers,
)
from steelyard.wire.decoding import decoder_of

#: Answers of the order by chance that are looked at, and where strata of them are.
MOST_BY_CHANCE, MOST_IN_STRATA = 2_000, 20_000
#: Checks without which there is no true share.
MIN_CHECKS = 2
#: Outcomes of a decision by whose probability strata are sought, those on top most often.
_MOST_STRATIFIED = 8
#: Strata count where they have more checks than the order of all by more than this: rows picked by
#: hand may lengthen each by one.
_FEW_MORE = N_STRATA


class _Result(msgspec.Struct):
    probabilities: dict[str, float]


_results = decoder_of(dict[str, _Result])

Outcome: TypeAlias = str | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DrawnAnswer:
    """The probabilities of an answer's decision, and the true outcome where it was checked."""

    id: str
    probabilities: Mapping[str, float]
    came_true: Outcome | None


@dataclass(frozen=True, slots=True)
class KnownRates:
    """How often each outcome was answered with each by an evaluation: ``counts[target][top]``."""

    evaluation_id: str
    outcomes: Sequence[str]
    counts: Sequence[Sequence[int]]

    def rate(self, outcome: str, n_yes: float, n_answers: int) -> TrueRate | None:
        """Return how often an outcome is true that a model says so often."""
        if outcome not in self.outcomes:
            return None
        table, place = np.array(self.counts), list(self.outcomes).index(outcome)
        n_so, n_hits = int(table[place].sum()), int(table[place, place])
        n_not_so = int(table.sum()) - n_so
        n_rejected = n_not_so - int(table[:, place].sum()) + n_hits
        return corrected_rate(n_yes, n_answers, (n_hits, n_so), (n_rejected, n_not_so))


#: Returns the rates of an account's model, by its name or number, and a decision's id.
FindRates: TypeAlias = Callable[[Connection, str, str, str], KnownRates | None]


class CheckedDecision:
    """A decision's answers in the order by chance, in the strata of which most were checked.

    ``n_checked``: its answers of the window that were checked, in whatever order. ``n_answers``: those
    of the window, of which the first by chance are here.
    """

    def __init__(self, answers: Sequence[DrawnAnswer], n_checked: int, n_answers: int) -> None:
        self._strata, self._checks = _strata_with_most_checks(answers)
        self._n_answers = n_answers
        self.n = sum(map(len, self._checks))
        self.n_left_out = max(n_checked - self.n, 0)

    def rate(self, outcome: str, mean_probability: float) -> TrueRate | None:
        """Return how often an outcome is true among all answers of the window."""
        sizes = self._sizes()
        strata = [
            Stratum(
                float(np.mean([each.probabilities.get(outcome, 0.0) for each in answers])),
                size,
                [each.probabilities.get(outcome, 0.0) for each in checks],
                [_share_of(outcome, each.came_true) for each in checks],
            )
            for answers, checks, size in zip(self._strata, self._checks, sizes, strict=True)
        ]
        if len(strata) > 1:
            return stratified_rate(strata)
        first = strata[0]
        return true_rate(mean_probability, sizes[0], first.probabilities, first.came_true)

    def weights(self) -> dict[str, float]:
        """Return how many answers of the window each check by chance stands for, by its id."""
        return {
            each.id: size / len(checks)
            for checks, size in zip(self._checks, self._sizes(), strict=True)
            for each in checks
        }

    def _sizes(self) -> list[int]:
        """Return how many answers of the window each stratum has, of which only some may be read."""
        n_read = max(sum(map(len, self._strata)), 1)
        pairs = zip(self._strata, self._checks, strict=True)
        return [
            max(round(len(answers) * self._n_answers / n_read), len(checks))
            for answers, checks in pairs
        ]


def read_checked(
    connection: Connection,
    answers: StoredAnswers,
    criteria: AnswerCriteria,
    only: str | None = None,
) -> dict[str, CheckedDecision]:
    """Return the decisions of a window of which answers were checked, or the ``only`` one, by id."""
    n_checked = count_observed_by_name(connection, criteria)
    if not n_checked:
        return {}

    def read(limit: int) -> dict[str, CheckedDecision]:
        rows = answers.by_chance(connection, criteria, limit)
        observed = feedback_of_answers(connection, [row.id for row in rows], by=criteria.by)
        drawn: dict[str, list[DrawnAnswer]] = {}
        for row in rows:
            came_true = observed.get(row.id, {})
            for name, result in _results.decode(row.results).items():
                if name in n_checked and only in {None, name}:
                    answer = DrawnAnswer(row.id, result.probabilities, came_true.get(name))
                    drawn.setdefault(name, []).append(answer)
        is_whole = len(rows) < limit
        times = 1.0 if is_whole else answers.count(connection, criteria) / len(rows)
        return {
            name: CheckedDecision(each, n_checked[name], round(len(each) * times))
            for name, each in drawn.items()
        }

    checked = read(MOST_BY_CHANCE)
    # What was checked further on may be of strata.
    if any(each.n_left_out > _FEW_MORE for each in checked.values()):
        checked = read(MOST_IN_STRATA)
    return checked


def in_strata(rows: Iterable[ShortRow], decision: str, outcome: str) -> Iterator[ShortRow]:
    """Yield answers in the order by chance, in turn of the strata of an outcome's probability."""
    strata: list[list[tuple[float, ShortRow]]] = [[] for _ in range(N_STRATA)]
    for row in rows:
        result = _results.decode(row.results).get(decision)
        if result is not None:
            probability = result.probabilities.get(outcome, 0.0)
            strata[stratum_of(probability)].append((probability, row))
    sizes = [len(each) for each in strata]
    means = [float(np.mean([p for p, _ in each])) if each else 0.0 for each in strata]
    left = [iter(each) for each in strata]
    for stratum in strata_in_turn(sizes, means, sum(sizes)):
        yield next(left[stratum])[1]


def _strata_with_most_checks(
    answers: Sequence[DrawnAnswer],
) -> tuple[list[list[DrawnAnswer]], list[list[DrawnAnswer]]]:
    """Return strata of answers, and of each those that were checked without a gap."""
    best = [list(answers)]
    best_checks = [_without_gap(answers)]
    most = len(best_checks[0]) + _FEW_MORE
    tops = Counter(
        max(each.probabilities, key=each.probabilities.__getitem__)
        for each in answers
        if each.probabilities
    )
    for outcome, _ in tops.most_common(_MOST_STRATIFIED):
        strata: list[list[DrawnAnswer]] = [[] for _ in range(N_STRATA)]
        for each in answers:
            strata[stratum_of(each.probabilities.get(outcome, 0.0))].append(each)
        strata = [stratum for stratum in strata if stratum]
        checks = [_without_gap(stratum) for stratum in strata]
        pairs = zip(strata, checks, strict=True)
        is_enough = all(len(of) >= min(FEWEST_OF_STRATUM, len(each)) for each, of in pairs)
        n = sum(map(len, checks))
        if len(strata) > 1 and is_enough and n > most:
            best, best_checks, most = strata, checks, n
    return best, best_checks


def _without_gap(answers: Sequence[DrawnAnswer]) -> list[DrawnAnswer]:
    return list(takewhile(lambda each: each.came_true is not None, answers))


def _share_of(outcome: str, came_true: Any) -> float:
    return (
        float(came_true == outcome) if isinstance(came_true, str) else came_true.get(outcome, 0.0)
    )
