"""The actions of a policy on decisions already scored, and their cost.

The effect of ``action_costs`` and ``abstain_below`` on the records of one decision. The decide
call does the same for one answer (``steelyard.decisions.policy``); a test holds the two to the same
choices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from msgspec import UNSET, UnsetType

from steelyard.calibration.bins import FloatArray
from steelyard.decisions.policy import check_action, check_keys
from steelyard.decisions.wire import ABSTAIN, MAX_ACTIONS
from steelyard.evaluations.measures.curves import abstention_cost_curve
from steelyard.evaluations.measures.records import (
    PROPORTIONS,
    IndexArray,
    Range,
    RecordMeasures,
    Records,
    measure_records,
)
from steelyard.evaluations.measures.sampling import ratio_measures
from steelyard.evaluations.queries_wire import MAX_COST
from steelyard.evaluations.wire import ActionShare, CostCurve, PolicyReport
from steelyard.proof.differences import Bootstrap, sum_by_context
from steelyard.wire.measures import Measure
from steelyard.wire.violations import BODY, Path, Violations, refusal, show

#: What a share can be.
_SHARE: Range = (0.0, 1.0)

Costs: TypeAlias = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, eq=False)
class ActedCosts:
    """The cheapest action on each of n records by its probabilities, and its cost.

    ``paid`` is the cost under the targets, ``promised`` that under the probabilities; ``costs``, (n,
    n_actions), are those of every action under the targets. ``ranges`` are the least and the most that
    each action costs with any outcome.
    """

    chosen: IndexArray
    paid: FloatArray
    promised: FloatArray
    costs: FloatArray
    ranges: tuple[Range, ...]

    @property
    def range(self) -> Range:
        """Return the least and the most that any action costs."""
        return min(low for low, _ in self.ranges), max(high for _, high in self.ranges)


def acted_costs(
    records: Records, rows: IndexArray, action_costs: Costs, *, path: Path = (*BODY, "action_costs")
) -> ActedCosts:
    """Choose the cheapest action on every record of a decision, with targets.

    ``path`` says where the costs are in the request, for errors about them. Raises
    ``InvalidRequestError`` when the costs do not fit the decision's outcomes, are not finite or are
    too large to add, and ``ValueError`` when the records have rewards: nothing says which outcome
    was right.
    """
    if records.supervision != "targets":
        raise ValueError("Costs need targets; these records have rewards.")
    codes = records.outcome_codes[rows]
    list_codes = np.unique(codes).tolist()
    _check_costs(action_costs, [records.outcome_lists[code] for code in list_codes], path)
    chosen = np.zeros(len(rows), dtype=np.intp)
    promised = np.zeros(len(rows))
    costs = np.zeros((len(rows), len(action_costs)))
    for code in list_codes:
        places = np.flatnonzero(codes == code)
        names = records.outcome_lists[code]
        matrix = np.array([[float(row[name]) for name in names] for row in action_costs.values()])
        numbers = records.offsets[rows[places], None] + np.arange(len(names))
        expected = records.probabilities[numbers] @ matrix.T
        chosen[places] = _cheapest(expected, records.probabilities[numbers], matrix)
        promised[places] = expected.min(axis=1)
        costs[places] = records.labels[numbers] @ matrix.T
    paid = costs[np.arange(len(rows)), chosen]
    ends = [[float(cost) for cost in row.values()] for row in action_costs.values()]
    ranges = tuple((min(each), max(each)) for each in ends)
    return ActedCosts(chosen, paid, promised, costs, ranges)


def policy_report(
    records: Records,
    decision_id: str,
    *,
    action_costs: Costs | None = None,
    abstain_below: float | None = None,
    measures: RecordMeasures | None = None,
    bootstrap: Bootstrap | None = None,
) -> PolicyReport:
    """Return the actions of a policy on one decision's records.

    ``action_costs`` are by action and outcome, and need targets; without them the action is the top
    outcome. It abstains when the largest probability, 0 to 1, is strictly lower than
    ``abstain_below``.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When the policy does not fit the decision.
    LookupError
        When no record is of that decision.
    ValueError
        When costs are given and the records have rewards.
    """
    if abstain_below is not None and not 0 <= abstain_below <= 1:
        raise refusal((*BODY, "abstain_below"), "must be from 0 to 1.", "out_of_range")
    rows = rows_of_decision(records, decision_id)
    decision_measures = (measure_records(records) if measures is None else measures).take(rows)
    did = (decision_measures.p_top >= (abstain_below or 0.0)).astype(np.float64)
    acted = None if action_costs is None else acted_costs(records, rows, action_costs)
    if acted is None:
        names, chosen = _commonest(*_top_names(records, rows, decision_measures.top))
    else:
        names, chosen = list(action_costs or ()), acted.chosen
    means = _Means(records.context_codes[rows], bootstrap or Bootstrap())
    taken = (chosen[:, None] == np.arange(len(names))) * did[:, None]
    costs: Sequence[Measure | UnsetType] = (
        [UNSET] * len(names) if acted is None else means.each(acted.costs, acted.ranges)
    )
    shares = means.each(taken, [_SHARE] * len(names))
    actions = [
        ActionShare(action=name, share=share, cost=cost)
        for name, share, cost in zip(names, shares, costs, strict=True)
    ]
    actions.append(ActionShare(action=ABSTAIN, share=means.share(1 - did)))
    figures: dict[str, Measure | None] = {
        name: means.of(
            decision_measures.values[name],
            did,
            decision_measures.range_of(name),
            is_proportion=name in PROPORTIONS,
        )
        for name in ("accuracy", "expected_reward")
        if name in decision_measures.values
    }
    if acted is not None:
        figures["cost"] = means.of(acted.paid, did, acted.range)
        figures["promised_cost"] = means.of(acted.promised, did, acted.range)
        figures["least_cost"] = means.of(acted.costs.min(axis=1), did, acted.range)
    return PolicyReport(n=len(rows), coverage=means.share(did), actions=actions, **figures)


def policy_cost_curve(
    records: Records,
    decision_id: str,
    *,
    action_costs: Costs,
    abstain_cost: float = 0.0,
    bootstrap: Bootstrap | None = None,
) -> CostCurve:
    """Return the mean cost of a policy's actions by ``abstain_below``; refuses as ``acted_costs``.

    Raises ``LookupError`` when no record is of that decision, and ``ValueError`` when the cost of
    abstaining is not finite.
    """
    rows = rows_of_decision(records, decision_id)
    acted = acted_costs(records, rows, action_costs)
    return abstention_cost_curve(
        acted.paid,
        measure_records(records).p_top[rows],
        records.context_codes[rows],
        paid_range=acted.range,
        abstain_cost=abstain_cost,
        bootstrap=bootstrap,
    )


def expected_cost(
    records: Records, decision_id: str, action_costs: Costs, *, path: Path
) -> Measure:
    """Return the mean cost of the cheapest actions; refuses as ``acted_costs``, and for want of records."""
    rows = rows_of_decision(records, decision_id)
    acted = acted_costs(records, rows, action_costs, path=path)
    means = _Means(records.context_codes[rows], Bootstrap())
    (cost,) = means.each(acted.paid[:, None], [acted.range])
    return cost


def rows_of_decision(records: Records, decision_id: str) -> IndexArray:
    """Return which records are of a decision; raises ``LookupError`` when none is."""
    rows = np.flatnonzero(records.decision_ids == decision_id)
    if not rows.size:
        msg = f"No record is of a decision named {show(decision_id)}; choose one that was scored."
        raise LookupError(msg)
    return rows


def _cheapest(expected: FloatArray, probabilities: FloatArray, matrix: FloatArray) -> IndexArray:
    """Return the cheapest action of each record, the first on a tie.

    Rounding may break exact ties: where costs are that close, they are summed exactly as the decide
    call sums them.
    """
    chosen = np.asarray(expected.argmin(axis=1), dtype=np.intp)
    slack = 1e-12 * float(np.abs(matrix).max())
    is_close = (expected <= expected.min(axis=1, keepdims=True) + slack).sum(axis=1) > 1
    for row in np.flatnonzero(is_close).tolist():
        costs = [math.fsum((probabilities[row] * line).tolist()) for line in matrix]
        chosen[row] = costs.index(min(costs))
    return chosen


class _Means:
    """Means over some of a decision's records, with their intervals."""

    def __init__(self, context_codes: IndexArray, bootstrap: Bootstrap) -> None:
        self._codes = context_codes
        self._bootstrap = bootstrap

    def of(
        self,
        values: FloatArray,
        counted: FloatArray,
        within: Range | None,
        *,
        is_proportion: bool = False,
    ) -> Measure | None:
        sums = sum_by_context(np.stack([values * counted, counted], axis=1), self._codes)
        (measure,) = ratio_measures(
            sums[:, :1],
            sums[:, 1:],
            self._bootstrap,
            are_proportions=[is_proportion],
            ranges=[within],
        )
        return measure

    def share(self, values: FloatArray) -> Measure:
        (measure,) = self.each(values[:, None], [_SHARE])
        return measure

    def each(self, columns: FloatArray, ranges: Sequence[Range]) -> list[Measure]:
        """Return the mean of each column, within its range; they share one set of draws."""
        n = columns.shape[1]
        sums = sum_by_context(np.hstack([columns, np.ones_like(columns)]), self._codes)
        means = ratio_measures(
            sums[:, :n],
            sums[:, n:],
            self._bootstrap,
            are_proportions=[within is _SHARE for within in ranges],
            ranges=ranges,
        )
        # A decision has one record or more, so that none is without a mean.
        return [measure for measure in means if measure is not None]


def _top_names(records: Records, rows: IndexArray, top: IndexArray) -> tuple[list[str], IndexArray]:
    """Return the outcomes as actions, and which of them each record's top is."""
    tops = [records.outcomes_of(row)[index] for row, index in zip(rows, top, strict=True)]
    list_codes = np.unique(records.outcome_codes[rows]).tolist()
    lists = sorted(records.outcome_lists[code] for code in list_codes)
    place = {name: 0 for outcomes in lists for name in outcomes}
    place = {name: index for index, name in enumerate(place)}
    return list(place), np.array([place[name] for name in tops], dtype=np.intp)


def _commonest(names: list[str], chosen: IndexArray) -> tuple[list[str], IndexArray]:
    """Leave ``MAX_ACTIONS`` of more actions, those taken most; the others are -1 then."""
    if len(names) <= MAX_ACTIONS:
        return names, chosen
    counts = np.bincount(chosen, minlength=len(names))
    commonest = np.sort(np.argsort(-counts, kind="stable")[:MAX_ACTIONS])
    places = np.full(len(names), -1, dtype=np.intp)
    places[commonest] = np.arange(len(commonest))
    return [names[index] for index in commonest.tolist()], places[chosen]


def _check_costs(action_costs: Costs, lists: list[tuple[str, ...]], path: Path) -> None:
    violations = Violations()
    if not action_costs:
        violations.add(path, "has no action; give one or more.", "too_short")
    elif len(action_costs) > MAX_ACTIONS:
        violations.add(
            path, f"has {len(action_costs)} actions; give 1 to {MAX_ACTIONS}.", "out_of_range"
        )
        violations.raise_if_any()
    names = list(dict.fromkeys(name for outcomes in lists for name in outcomes))
    for action, row in action_costs.items():
        check_action(action, path, violations)
        check_keys(row, names, (*path, action), violations)
        for name, cost in row.items():
            if name in names and (isinstance(cost, bool) or not abs(cost) <= MAX_COST):
                violations.add(
                    (*path, action, name),
                    f"must be a number from -{MAX_COST:g} to {MAX_COST:g}; scale the costs down.",
                    "out_of_range",
                )
    violations.raise_if_any()
