"""Figures against a threshold: share answered and its quality, "yes" or "no", cost.

All curves are over the same 101 thresholds, 0 to 1 in steps of 0.01.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import UNSET

from steelyard.calibration.bins import FloatArray
from steelyard.evaluations.measures import records
from steelyard.evaluations.measures.outcomes import OutcomeTable
from steelyard.evaluations.measures.sampling import ratio_measures
from steelyard.evaluations.wire import CostCurve, CostPoint, CoveragePoint, YesPoint
from steelyard.proof.differences import Bootstrap, sum_by_context
from steelyard.wire.measures import Measure

#: Where curves are drawn.
THRESHOLDS = tuple(index / 100 for index in range(101))

_YES = "yes"
#: Measures of the answered decisions.
_COVERED = ("accuracy", "expected_reward", "scaled_reward")
#: Thresholds times records that are resampled at once, some 120 bytes each.
_CELLS_AT_A_TIME = 4_000_000


def coverage_curve(
    measures: records.RecordMeasures, context_codes: records.IndexArray, bootstrap: Bootstrap
) -> list[CoveragePoint]:
    """Return the remaining share and its quality when unsure decisions are abstained.

    A decision is answered when its top probability is not below the threshold.

    References
    ----------
    El-Yaniv and Wiener, "On the Foundations of Noise-free Selective Classification", Journal of
    Machine Learning Research, 2010. Geifman and El-Yaniv, "Selective Classification for Deep Neural
    Networks", NeurIPS 2017.
    """
    is_answered = (measures.p_top[:, None] >= np.array(THRESHOLDS)).astype(np.float64)
    curves: dict[str, list[Measure | None]] = {}
    for name in [name for name in _COVERED if name in measures.values]:
        counted = is_answered * measures.counted[name][:, None]
        values = counted * measures.values[name][:, None]
        curves[name] = ratio_measures(
            sum_by_context(values, context_codes),
            sum_by_context(counted, context_codes),
            bootstrap,
            are_proportions=[name in records.PROPORTIONS] * len(THRESHOLDS),
            ranges=[measures.range_of(name)] * len(THRESHOLDS),
        )
    counts = is_answered.sum(axis=0)
    return [
        CoveragePoint(
            threshold=threshold,
            n=int(counts[index]),
            coverage=float(counts[index] / len(is_answered)),
            **{name: curve[index] for name, curve in curves.items()},
        )
        for index, threshold in enumerate(THRESHOLDS)
    ]


def yes_curve(table: OutcomeTable, bootstrap: Bootstrap) -> list[YesPoint]:
    """Return precision, recall and F1 of "yes" by the least probability to answer it.

    Raises ``ValueError`` when the decision has no outcome named "yes".
    """
    index = _place_of_yes(table)
    is_yes = (table.truth == index).astype(np.float64)
    is_yes_answered = (table.probabilities[:, index, None] >= np.array(THRESHOLDS)).astype(
        np.float64
    )
    right = is_yes_answered * is_yes[:, None]
    actual = np.broadcast_to(is_yes[:, None], is_yes_answered.shape)
    summed = sum_by_context(np.hstack([right, is_yes_answered, actual]), table.context_codes)
    n = len(THRESHOLDS)
    hits, answered, true = summed[:, :n], summed[:, n : 2 * n], summed[:, 2 * n :]
    either = (answered + true - hits).sum(axis=0)
    ratios = ratio_measures(
        np.hstack([hits, hits, 2 * hits]),
        np.hstack([answered, true, answered + true]),
        bootstrap,
        are_proportions=[True] * (2 * n) + [False] * n,
        ranges=[(0.0, 1.0)] * (3 * n),
        counts=np.hstack([answered.sum(axis=0), true.sum(axis=0), either]),
    )
    predicted = is_yes_answered.sum(axis=0)
    return [
        YesPoint(
            threshold=threshold,
            predicted=int(predicted[index]),
            precision=ratios[index],
            recall=ratios[n + index],
            f1=ratios[2 * n + index],
        )
        for index, threshold in enumerate(THRESHOLDS)
    ]


def binary_cost_curve(
    table: OutcomeTable,
    *,
    false_positive: float,
    false_negative: float,
    bootstrap: Bootstrap | None = None,
) -> CostCurve:
    """Return the mean cost of a binary decision by the least probability to answer "yes".

    ``false_positive`` is the cost of a wrong "yes", ``false_negative`` that of a wrong "no".
    Raises ``ValueError`` when one is negative or not finite, both are 0, or there is no outcome
    "yes".

    References
    ----------
    Elkan, "The Foundations of Cost-Sensitive Learning", IJCAI 2001. Drummond and Holte, "Cost
    Curves: An Improved Method for Visualizing Classifier Performance", Machine Learning, 2006.
    """
    costs = (false_positive, false_negative)
    if not all(math.isfinite(cost) and cost >= 0 for cost in costs) or max(costs) == 0:
        raise ValueError(f"Costs must be finite, not negative and not both 0; they are {costs}.")
    index = _place_of_yes(table)
    says_yes = table.probabilities[:, index, None] >= np.array(THRESHOLDS)
    # What a soft target leaves open is paid for by its share, as ``policies.acted_costs`` does.
    is_yes = table.targets[:, index]
    when_yes, when_no = (1 - is_yes) * false_positive, is_yes * false_negative
    paid = np.where(says_yes, when_yes[:, None], when_no[:, None])
    curve = _cost_curve(
        paid, np.ones_like(paid), table.context_codes, bootstrap or Bootstrap(), (0.0, max(costs))
    )
    # Relative to the larger, so that no cost is too large to add.
    scale = max(costs)
    calibrated = (false_positive / scale) / (false_positive / scale + false_negative / scale)
    return CostCurve(
        points=curve.points, best_threshold=curve.best_threshold, calibrated_threshold=calibrated
    )


def abstention_cost_curve(
    paid: FloatArray,
    p_top: FloatArray,
    context_codes: records.IndexArray,
    *,
    paid_range: records.Range,
    abstain_cost: float,
    bootstrap: Bootstrap | None = None,
) -> CostCurve:
    """Return the mean cost of acting by the top probability under which nothing is done.

    ``paid`` is the cost of acting on each record (see ``policies.acted_costs``) and ``paid_range``
    the least and the most that it can, ``abstain_cost`` that of abstaining, such as a person's time. Raises
    ``ValueError`` when the latter is not
    finite.
    """
    if not math.isfinite(abstain_cost):
        raise ValueError(f"The cost of abstaining must be finite; it is {abstain_cost}.")
    acts = (p_top[:, None] >= np.array(THRESHOLDS)).astype(np.float64)
    return _cost_curve(
        paid[:, None] * acts,
        acts,
        context_codes,
        bootstrap or Bootstrap(),
        paid_range,
        abstain_cost,
    )


def _cost_curve(
    paid: FloatArray,
    acts: FloatArray,
    context_codes: records.IndexArray,
    bootstrap: Bootstrap,
    paid_range: records.Range,
    abstain_cost: float | None = None,
) -> CostCurve:
    in_all = paid + (1 - acts) * (abstain_cost or 0.0)
    in_all_range = paid_range
    if abstain_cost is not None:
        in_all_range = (min(paid_range[0], abstain_cost), max(paid_range[1], abstain_cost))
    coverage = acts.mean(axis=0)
    points = []
    # Equal seeds draw equal resamples, so that parts give what the whole would.
    n_at_a_time = max(1, _CELLS_AT_A_TIME // len(paid))
    for start in range(0, len(THRESHOLDS), n_at_a_time):
        part = slice(start, start + n_at_a_time)
        thresholds = THRESHOLDS[part]
        n = len(thresholds)
        acted = acts[:, part]
        columns = np.hstack([paid[:, part], in_all[:, part], acted, np.ones_like(acted)])
        summed = sum_by_context(columns, context_codes)
        ratios = ratio_measures(
            summed[:, : 2 * n],
            summed[:, 2 * n :],
            bootstrap,
            are_proportions=[False] * (2 * n),
            ranges=[paid_range] * n + [in_all_range] * n,
        )
        for index, threshold in enumerate(thresholds):
            total = ratios[n + index]
            points.append(
                CostPoint(
                    threshold=threshold,
                    coverage=float(coverage[start + index]),
                    cost=ratios[index],
                    cost_in_all=UNSET if abstain_cost is None or total is None else total,
                )
            )
    means = in_all.mean(axis=0)
    # Within rounding of the lowest, so that the order of records does not choose among equals.
    slack = 1e-12 * max(1.0, float(np.abs(means).max()))
    best = int(np.flatnonzero(means <= means.min() + slack)[0])
    return CostCurve(points=points, best_threshold=THRESHOLDS[best])


def _place_of_yes(table: OutcomeTable) -> int:
    if _YES not in table.names:
        raise ValueError(f"The decision has no outcome named {_YES!r}; choose a binary decision.")
    return table.names.index(_YES)
