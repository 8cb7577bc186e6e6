"""Figures of stored decisions over time: a point for each stretch, of a bounded number of answers.

A window that has few answers is read whole. Of one that has more, each stretch is cut into slices, and
of each slice as many of its newest answers are read as it has of the stretch's: hours count by how much
was asked in them. Feedback is rare, so that of each stretch the newest answers that have some are read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Connection

from steelyard.calibration.metrics import decision_brier_scores
from steelyard.calibration.true_rates import TrueRate
from steelyard.decision_log import wire
from steelyard.decision_log.answers import StoredAnswers
from steelyard.decision_log.costs import costs_between
from steelyard.decision_log.store import (
    AnswerCriteria,
    ShortRow,
    feedback_of_answers,
)
from steelyard.decision_log.traffic import did_abstain, is_right, mean_of, quantile, share
from steelyard.decision_log.true_shares import (
    MIN_CHECKS,
    CheckedDecision,
    FindRates,
    KnownRates,
    read_checked,
)
from steelyard.ledger.money import to_usd
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled
from steelyard.wire.measures import Measure

#: Answers that are read for a series at most, but for one of each slice.
MOST_READ = 20_000
#: Slices of a window, over all of its points.
_SLICES = 720
#: Outcomes whose shares are reported, those that were on top most often.
MAX_OUTCOMES = 8
_AT_ONCE = 500


class _Result(msgspec.Struct):
    """The fields of a result that figures need."""

    top: str
    action: str
    probabilities: dict[str, float]
    route: list[Any] = []


_results = decoder_of(dict[str, _Result])


@dataclass(slots=True)
class _Point:
    """The sums of a period."""

    answers: int = 0
    read: int = 0
    decisions: int = 0
    abstained: int = 0
    escalated: int = 0
    times: list[float] = field(default_factory=list)
    tops: Counter[tuple[str, str]] = field(default_factory=Counter)
    sums: dict[str, Counter[str]] = field(default_factory=dict)
    right: int = 0
    squares: list[float] = field(default_factory=list)
    cost_nano: int = 0


class Series:
    """Reads a window and adds it up by stretches."""

    def __init__(
        self,
        account_id: str,
        since: float,
        until: float,
        query: wire.DecisionSeriesQuery,
        answers: StoredAnswers | None = None,
        find_rates: FindRates | None = None,
    ) -> None:
        self._account_id, self._query = account_id, query
        self._find_rates = find_rates
        #: Those that answered, by name or number.
        self._models: set[str] = set()
        self._answers = answers or StoredAnswers()
        self._since, self._until, self._width = since, until, query.bucket_s
        self._first = math.floor(since / self._width) * self._width
        n = max(1, math.ceil((until - self._first) / self._width))
        self._points = [_Point() for _ in range(n)]
        self._is_sampled = False
        self._has_cost = query.decision is None and "@" not in (query.model or "")

    def read(self, connection: Connection) -> wire.DecisionSeries:
        """Return the series."""
        n_slices = max(1, _SLICES // len(self._points))
        slice_s = self._width / n_slices
        counts = self._answers.count_between(
            connection, self._of_window(), first=self._first, width=slice_s
        )
        for place, n in counts.items():
            self._points[min(place // n_slices, len(self._points) - 1)].answers += n
        self._is_sampled = sum(counts.values()) > MOST_READ
        if self._is_sampled:
            self._read_slices(connection, counts, n_slices)
            self._read_observed(connection)
        else:
            rows = self._answers.between(connection, self._of_window())
            for part in _parts(rows):
                self._add(part)
                self._observe(connection, part)
        if self._has_cost:
            costs = costs_between(
                connection,
                self._account_id,
                since=self._since,
                until=self._until,
                model=self._query.model,
                named=self._query.named,
                first=self._first,
                width=self._width,
            )
            for place, nano in costs.items():
                self._points[min(place, len(self._points) - 1)].cost_nano += nano
        criteria = replace(self._of_window(), by=self._query.by)
        checked = read_checked(connection, self._answers, criteria, self._query.decision)
        return self._to_wire(checked, self._known_rates(connection, checked))

    def _known_rates(
        self, connection: Connection, checked: Mapping[str, CheckedDecision]
    ) -> dict[str, KnownRates]:
        """Return the rates of the one model that answered, of decisions without checks by chance."""
        decisions = {decision for point in self._points for decision in point.sums}
        if self._find_rates is None or len(self._models) != 1:
            return {}
        (model,) = self._models
        return {
            decision: rates
            for decision in decisions
            if decision not in checked or checked[decision].n < MIN_CHECKS
            if (rates := self._find_rates(connection, self._account_id, model, decision))
        }

    def _of_window(self, since: float = -math.inf, until: float = math.inf) -> AnswerCriteria:
        """Return which answers are read: those of the window, or of a part of it."""
        return AnswerCriteria(
            account_id=self._account_id,
            since=max(since, self._since),
            until=min(until, self._until),
            model=self._query.model,
            named=self._query.named,
        )

    def _point(self, at: float) -> _Point:
        place = math.floor((at - self._first) / self._width)
        return self._points[min(max(place, 0), len(self._points) - 1)]

    def _read_slices(
        self, connection: Connection, counts: Mapping[int, int], n_slices: int
    ) -> None:
        quota, slice_s = MOST_READ // len(self._points), self._width / n_slices
        for place, n in counts.items():
            since = self._first + place * slice_s
            until = self._first + (place + 1) * slice_s
            limit = math.ceil(quota * n / max(self._points[place // n_slices].answers, quota))
            self._add(self._answers.newest(connection, self._of_window(since, until), limit))

    def _read_observed(self, connection: Connection) -> None:
        quota = MOST_READ // len(self._points)
        for place in range(len(self._points)):
            start = self._first + place * self._width
            rows = self._answers.newest(
                connection,
                self._of_window(start, start + self._width),
                quota,
                is_observed=True,
                observed_of=self._query.decision,
            )
            for part in _parts(rows):
                self._observe(connection, part)

    def _selected_results(self, row: ShortRow) -> dict[str, _Result]:
        results, only = _results.decode(row.results), self._query.decision
        if only is None:
            return results
        return {only: results[only]} if only in results else {}

    def _add(self, rows: Iterable[ShortRow]) -> None:
        for row in rows:
            results = self._selected_results(row)
            if not results:
                continue
            self._models.add(row.version or row.model)
            point = self._point(row.created_at)
            point.read += 1
            point.escalated += any(len(result.route) > 1 for result in results.values())
            point.times.append(math.nan if row.total_ms is None else row.total_ms)
            for name, result in results.items():
                point.decisions += 1
                point.abstained += did_abstain(result.action, result.top)
                point.tops[name, result.top] += 1
                point.sums.setdefault(name, Counter()).update(result.probabilities)

    def _observe(self, connection: Connection, rows: Sequence[ShortRow]) -> None:
        observed = feedback_of_answers(connection, [row.id for row in rows], by=self._query.by)
        for row in rows:
            outcomes = observed.get(row.id)
            if outcomes is None:
                continue
            point = self._point(row.created_at)
            for name, result in self._selected_results(row).items():
                if name in outcomes:
                    point.right += is_right(result.top, outcomes[name])
                    point.squares.append(_squared_error(result.probabilities, outcomes[name]))

    def _to_wire(
        self, checked: Mapping[str, CheckedDecision], known: Mapping[str, KnownRates]
    ) -> wire.DecisionSeries:
        tops = sum((point.tops for point in self._points), Counter[tuple[str, str]]())
        # Of those as common as each other by name: answers are read in no order.
        most = sorted(tops, key=lambda key: (-tops[key], key))[:MAX_OUTCOMES]
        return wire.DecisionSeries(
            since=self._since,
            until=self._until,
            bucket_s=self._width,
            is_sampled=self._is_sampled,
            outcomes=[
                self._outcome_to_wire(tops, key, checked.get(key[0]), known.get(key[0]))
                for key in most
            ],
            outcomes_left_out=len(tops) - len(most),
            data=[
                self._point_to_wire(point, float(self._first + place * self._width), most)
                for place, point in enumerate(self._points)
            ],
        )

    def _outcome_to_wire(
        self,
        tops: Mapping[tuple[str, str], int],
        key: tuple[str, str],
        checked: CheckedDecision | None,
        known: KnownRates | None,
    ) -> wire.SeriesOutcome:
        decision, outcome = key
        n = sum(count for (name, _), count in tops.items() if name == decision)
        # Of a window that is read in part, each point stands for all of its answers.
        weights = [point.answers / max(point.read, 1) for point in self._points]
        sums = [point.sums.get(decision, Counter[str]()) for point in self._points]
        decisions = [
            sum(count for (name, _), count in point.tops.items() if name == decision)
            for point in self._points
        ]
        n_answers = float(np.dot(weights, decisions))
        mean = float(np.dot(weights, [counter[outcome] for counter in sums])) / n_answers
        rate = None if checked is None else checked.rate(outcome, mean)
        n_top = n_answers * tops[key] / n
        corrected = None if known is None else known.rate(outcome, n_top, round(n_answers))
        return wire.SeriesOutcome(
            decision=decision,
            outcome=outcome,
            share=share(tops[key], n),
            answers=round(n_answers),
            true_share=_measure(rate),
            corrected_share=_measure(corrected),
            corrected_by=None if known is None or corrected is None else known.evaluation_id,
            checks_to_halve=None if rate is None else rate.more,
            checks_left_out=0 if checked is None else checked.n_left_out,
        )

    def _point_to_wire(
        self, point: _Point, start: float, outcomes: Sequence[tuple[str, str]]
    ) -> wire.SeriesPoint:
        by_decision: Counter[str] = Counter()
        for (decision, _), n in point.tops.items():
            by_decision[decision] += n
        times = np.array(point.times, dtype=np.float64)
        return wire.SeriesPoint(
            start=start,
            answers=point.answers,
            answers_read=point.read,
            decisions=point.decisions,
            abstain_rate=share(point.abstained, point.decisions),
            escalation_rate=share(point.escalated, point.read),
            outcomes=[share(point.tops[key], by_decision[key[0]]) for key in outcomes],
            latency_p50_ms=quantile(times, 0.5),
            latency_p95_ms=quantile(times, 0.95),
            accuracy=share(point.right, len(point.squares)),
            brier=mean_of(point.squares, 2.0) if point.squares else None,
            cost_usd=to_usd(point.cost_nano) if self._has_cost else None,
        )


def _measure(rate: TrueRate | None) -> Measure | None:
    return None if rate is None else filled(Measure, rate)


def _squared_error(probabilities: Mapping[str, float], outcome: str | Mapping[str, float]) -> float:
    targets = {outcome: 1.0} if isinstance(outcome, str) else outcome
    forecast = [list(probabilities.values())]
    truth = [[targets.get(name, 0.0) for name in probabilities]]
    return float(decision_brier_scores(forecast, truth)[0])


def _parts(rows: Iterable[ShortRow]) -> Iterable[list[ShortRow]]:
    left = iter(rows)
    while part := list(islice(left, _AT_ONCE)):
        yield part
