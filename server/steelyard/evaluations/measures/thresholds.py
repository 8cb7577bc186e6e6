"""The probability from which to act on an outcome: by precision, certified, or by costs of errors.

A decision is sent to an outcome where that is the likeliest one and not less probable than the
threshold, as a policy's ``outcome_thresholds`` has it.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import UNSET

from steelyard.calibration.bins import FloatArray
from steelyard.calibration.certify import CertifiedThreshold, certify_threshold
from steelyard.evaluations.measures.curves import THRESHOLDS
from steelyard.evaluations.measures.outcomes import OutcomeTable, outcome_table
from steelyard.evaluations.measures.policies import rows_of_decision
from steelyard.evaluations.measures.records import RecordMeasures, Records
from steelyard.evaluations.measures.sampling import ratio_measures
from steelyard.evaluations.thresholds_wire import (
    CertifiedPrecision,
    OutcomePoint,
    OutcomeThreshold,
    ThresholdTrial,
)
from steelyard.proof.differences import Bootstrap, sum_by_context
from steelyard.wire.violations import BODY, Violations, show


def outcome_threshold(
    records: Records,
    measures: RecordMeasures,
    trial: ThresholdTrial,
    bootstrap: Bootstrap | None = None,
) -> OutcomeThreshold:
    """Return the threshold of an outcome that a trial asks for, and the effect of each threshold.

    Raises ``LookupError`` when no record is of that decision, and ``InvalidRequestError`` when the
    trial does not fit it.
    """
    table = outcome_table(records, measures, rows_of_decision(records, trial.decision_id))
    _check_trial(trial, table)
    place = table.names.index(trial.outcome)
    is_top = table.top == place
    p_top = table.probabilities[is_top, place]
    right = (table.truth[is_top] == place).astype(np.float64)
    n_contexts = int(table.context_codes.max()) + 1
    threshold, test = None, None
    if trial.precision is not None:
        threshold = _measured_threshold(p_top, right, trial.precision)
        if p_top.size:
            test = certify_threshold(
                p_top,
                right,
                table.context_codes[is_top],
                error=1 - trial.precision,
                confidence=trial.confidence,
            )
    elif trial.wrong_cost is not None:
        threshold = _cheapest_threshold(p_top, right, trial)
    if test is not None and test.holds:
        threshold = test.threshold
    at = THRESHOLDS if threshold is None else (*THRESHOLDS, threshold)
    points = _points(table, place, at, trial, bootstrap or Bootstrap())
    return OutcomeThreshold(
        decision_id=trial.decision_id,
        outcome=trial.outcome,
        n=len(table.top),
        contexts=n_contexts,
        threshold=threshold,
        at_threshold=None if threshold is None else points[-1],
        certified=CertifiedPrecision(precision=trial.precision, confidence=trial.confidence)
        if trial.precision is not None and test is not None and test.holds
        else None,
        missing_rows=_missing_rows(test, len(np.unique(table.context_codes[is_top])), n_contexts),
        points=points[: len(THRESHOLDS)],
    )


def _check_trial(trial: ThresholdTrial, table: OutcomeTable) -> None:
    violations = Violations()
    if trial.outcome not in table.names:
        violations.add(
            (*BODY, "outcome"),
            f"is {show(trial.outcome)}, which is not one of the decision's outcomes "
            f"({', '.join(map(show, table.names[:20]))}).",
            "unknown_outcome",
        )
    if (trial.wrong_cost is None) != (trial.abstain_cost is None):
        name = "wrong_cost" if trial.wrong_cost is None else "abstain_cost"
        violations.add((*BODY, name), "is missing; give both costs or neither.", "missing")
    elif trial.precision is not None and trial.wrong_cost is not None:
        violations.add(
            (*BODY, "wrong_cost"), "is given beside precision; keep one of them.", "conflict"
        )
    violations.raise_if_any()


def _measured_threshold(p_top: FloatArray, right: FloatArray, precision: float) -> float | None:
    """Return the lowest probability from which so many of these answers are right, if there is one."""
    thresholds, n_wrong, n = _from_each(p_top, right)
    enough = np.flatnonzero(n_wrong <= (1 - precision) * n + 1e-9)
    return float(thresholds[enough[-1]]) if enough.size else None


def _cheapest_threshold(p_top: FloatArray, right: FloatArray, trial: ThresholdTrial) -> float:
    """Return the lowest threshold of those whose answers cost least together; 1 to act on none."""
    thresholds, n_wrong, n = _from_each(p_top, right)
    wrong_cost, abstain_cost = trial.wrong_cost or 0.0, trial.abstain_cost or 0.0
    costs = np.append(
        n_wrong * wrong_cost + (len(p_top) - n) * abstain_cost, len(p_top) * abstain_cost
    )
    least = np.flatnonzero(costs <= costs.min() + 1e-12 * max(1.0, float(costs.max())))
    acting = least[least < len(thresholds)]
    return float(thresholds[acting[-1]]) if acting.size else 1.0


def _from_each(p_top: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each probability, the highest first, and the wrong answers and answers from it on."""
    order = np.argsort(-p_top, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(p_top[order]) < 0, p_top.size > 0))
    return p_top[order][ends], np.cumsum(1 - right[order])[ends], (ends + 1).astype(np.float64)


def _points(
    table: OutcomeTable,
    place: int,
    thresholds: tuple[float, ...],
    trial: ThresholdTrial,
    bootstrap: Bootstrap,
) -> list[OutcomePoint]:
    n = len(thresholds)
    is_top = (table.top == place).astype(np.float64)[:, None]
    is_true = (table.truth == place).astype(np.float64)[:, None]
    sent = is_top * (table.probabilities[:, place, None] >= np.array(thresholds))
    right, true = sent * is_true, np.broadcast_to(is_true, sent.shape)
    tops, bases = [right, right], [sent, true]
    ranges = [(0.0, 1.0)] * (2 * n)
    if trial.wrong_cost is not None and trial.abstain_cost is not None:
        paid = (sent - right) * trial.wrong_cost + (is_top - sent) * trial.abstain_cost
        tops, bases = [*tops, paid], [*bases, np.broadcast_to(is_top, sent.shape)]
        ranges += [(0.0, max(trial.wrong_cost, trial.abstain_cost))] * n
    summed = sum_by_context(np.hstack([*tops, *bases]), table.context_codes)
    k = len(tops) * n
    ratios = ratio_measures(
        summed[:, :k],
        summed[:, k:],
        bootstrap,
        are_proportions=[True] * (2 * n) + [False] * (k - 2 * n),
        ranges=ranges,
    )
    return [
        OutcomePoint(
            threshold=threshold,
            sent=int(sent[:, index].sum()),
            precision=ratios[index],
            recall=ratios[n + index],
            cost=ratios[2 * n + index] if k > 2 * n else UNSET,
        )
        for index, threshold in enumerate(thresholds)
    ]


def _missing_rows(test: CertifiedThreshold | None, n_sent: int, n_contexts: int) -> int | None:
    """Return rows that would certify a precision, of which as many have the outcome as of these."""
    if test is None or test.missing_rows is None:
        return None
    return math.ceil(test.missing_rows * n_contexts / n_sent)
