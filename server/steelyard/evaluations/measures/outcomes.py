"""The outcomes of one decision against each other: precision, recall, confusion, areas.

Of the records of one decision with targets; a record's true outcome is its target's largest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from steelyard.calibration.bins import FloatArray
from steelyard.calibration.intervals import proportion_interval
from steelyard.evaluations.measures.records import BoolArray, IndexArray, RecordMeasures, Records
from steelyard.evaluations.measures.sampling import ratio_measures
from steelyard.evaluations.wire import ConfusionMatrix, OutcomeMeasures
from steelyard.proof.differences import LEVEL, Bootstrap
from steelyard.wire.limits import MAX_OUTCOMES
from steelyard.wire.measures import Measure


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeTable:
    """The n records of one decision by outcome.

    ``names`` are those of the commonest list in its order, then others by name; ``top`` and
    ``truth``, (n,), index them. ``probabilities`` and ``targets``, (n, n_names), are 0 where a
    record does not offer the outcome. ``context_codes``, (n,), go from 0 up to the number of
    contexts.
    """

    names: tuple[str, ...]
    top: IndexArray
    truth: IndexArray
    probabilities: FloatArray
    targets: FloatArray
    is_offered: BoolArray
    context_codes: IndexArray


def outcome_table(records: Records, measures: RecordMeasures, rows: IndexArray) -> OutcomeTable:
    """Lay out records of one decision, with targets, by outcome: at most ``MAX_OUTCOMES`` together."""
    codes = records.outcome_codes[rows]
    names = outcome_names(records, rows)
    # Where every row offers its own, a table of all would be larger than the scored rows.
    if len(names) > MAX_OUTCOMES:
        msg = (
            f"The decision offers {len(names):,} outcomes; at most {MAX_OUTCOMES} can be compared."
        )
        raise ValueError(msg)
    place = {name: index for index, name in enumerate(names)}
    top, truth = np.empty(len(rows), dtype=np.intp), np.empty(len(rows), dtype=np.intp)
    probabilities = np.zeros((len(rows), len(place)))
    targets = np.zeros((len(rows), len(place)))
    is_offered = np.zeros((len(rows), len(place)), dtype=bool)
    for code in np.unique(codes).tolist():
        chosen = np.flatnonzero(codes == code)
        columns = np.array([place[name] for name in records.outcome_lists[code]], dtype=np.intp)
        top[chosen] = columns[measures.top[rows[chosen]]]
        truth[chosen] = columns[measures.truth[rows[chosen]]]
        numbers = records.offsets[rows[chosen], None] + np.arange(len(columns))
        probabilities[chosen[:, None], columns] = records.probabilities[numbers]
        targets[chosen[:, None], columns] = records.labels[numbers]
        is_offered[chosen[:, None], columns] = True
    _, context_codes = np.unique(records.context_codes[rows], return_inverse=True)
    return OutcomeTable(
        names=tuple(place),
        top=top,
        truth=truth,
        probabilities=probabilities,
        targets=targets,
        is_offered=is_offered,
        context_codes=context_codes,
    )


def outcome_names(records: Records, rows: IndexArray) -> tuple[str, ...]:
    """Return the outcomes of some records: those of the commonest list, then others by name."""
    codes = Counter(records.outcome_codes[rows].tolist())
    counts = Counter({records.outcome_lists[code]: n for code, n in codes.items()})
    lists = sorted(counts, key=lambda names: (-counts[names], names))
    rest = sorted({name for names in lists[1:] for name in names} - set(lists[0]))
    return (*lists[0], *rest)


def confusion_matrix(table: OutcomeTable) -> ConfusionMatrix:
    """Count the decisions of each true outcome by their top outcome."""
    k = len(table.names)
    counts = np.bincount(table.truth * k + table.top, minlength=k * k).reshape(k, k)
    return ConfusionMatrix(outcomes=list(table.names), counts=counts.tolist())


def outcome_measures(table: OutcomeTable, bootstrap: Bootstrap) -> list[OutcomeMeasures]:
    """Return the measures of every outcome, in the order of the table's names.

    Each figure's n is its denominator: precision rests on the decisions answered with the outcome,
    recall on those whose target it is, F1 on either.
    """
    k, n_contexts = len(table.names), int(table.context_codes.max()) + 1
    predicted = _sum_at(table, table.top)
    support = _sum_at(table, table.truth)
    right = _sum_at(table, table.top, (table.top == table.truth).astype(np.float64))
    offered, promised = np.zeros((n_contexts, k)), np.zeros((n_contexts, k))
    np.add.at(offered, table.context_codes, table.is_offered.astype(np.float64))
    np.add.at(promised, table.context_codes, table.probabilities)
    # An outcome answered or true, counted once where it is both: the decisions behind F1.
    either = (predicted + support - right).sum(axis=0)
    n_offered = offered.sum(axis=0)
    columns = (
        (right, predicted, True, predicted.sum(axis=0)),
        (right, support, True, support.sum(axis=0)),
        (2 * right, predicted + support, False, either),
        (support, offered, True, n_offered),
        (promised, offered, False, n_offered),
    )
    ratios = ratio_measures(
        np.hstack([column[0] for column in columns]),
        np.hstack([column[1] for column in columns]),
        bootstrap,
        are_proportions=[is_proportion for _, _, is_proportion, _ in columns for _ in range(k)],
        ranges=[(0.0, 1.0)] * (k * len(columns)),
        counts=np.hstack([column[3] for column in columns]),
    )
    measured: list[OutcomeMeasures] = []
    for index, name in enumerate(table.names):
        precision, recall, f1, share, mean_probability = ratios[index::k]
        # Every name is offered by some record, so these two are never without a base.
        assert share is not None  # noqa: S101
        assert mean_probability is not None  # noqa: S101
        rows = np.flatnonzero(table.is_offered[:, index])
        measured.append(
            OutcomeMeasures(
                outcome=name,
                support=int(support[:, index].sum()),
                predicted=int(predicted[:, index].sum()),
                precision=precision,
                recall=recall,
                f1=f1,
                share=share,
                mean_probability=mean_probability,
                auc=area_under_curve(
                    table.probabilities[rows, index],
                    table.truth[rows] == index,
                    table.context_codes[rows],
                ),
            )
        )
    return measured


def area_under_curve(
    scores: FloatArray, is_positive: BoolArray, context_codes: IndexArray
) -> Measure | None:
    """Return the area under the ROC curve: how often a positive scores above a negative.

    Ties count half. All arrays are of shape (n,); records of equal ``context_codes`` are not
    independent of each other. None without both positives and negatives. The interval is Clopper
    and Pearson's on as many trials as would give the clustered variance, fewer since Student's t is
    wider; where every pair agrees, on the contexts of the rarer side. O(n log n).

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver
    Operating Characteristic Curves", Biometrics, 1988. Obuchowski, "Nonparametric Analysis of
    Clustered ROC Curve Data", Biometrics, 1997. Newcombe, "Confidence Intervals for an Effect Size
    Measure Based on the Mann-Whitney Statistic", Statistics in Medicine, 2006. Korn and Graubard,
    "Confidence Intervals for Proportions with Small Expected Number of Positive Counts", Survey
    Methodology, 1998.
    """
    positives, negatives = scores[is_positive], scores[~is_positive]
    if not (positives.size and negatives.size):
        return None
    above = _share_below(negatives, positives)
    below = 1 - _share_below(positives, negatives)
    area = float(above.mean())
    _, codes = np.unique(context_codes, return_inverse=True)
    n_contexts = int(codes.max()) + 1
    of_positive, of_negative = codes[is_positive], codes[~is_positive]
    m, n = positives.size, negatives.size
    # Each context's sum of its records' parts of the area, less those of the mean.
    up = np.bincount(of_positive, above - area, n_contexts)
    down = np.bincount(of_negative, below - area, n_contexts)
    n_up, n_down = len(np.unique(of_positive)), len(np.unique(of_negative))
    variance = (
        up @ up * _bessel(n_up) / m**2
        + down @ down * _bessel(n_down) / n**2
        + 2 * (up @ down) * _bessel(n_contexts) / (m * n)
    )
    from scipy.special import stdtrit  # noqa: PLC0415 - slow to load

    fewer = min(n_up, n_down)
    trials = float(fewer)
    if variance > 0 and 0 < area < 1:
        trials = min(max(area * (1 - area) / float(variance), 1.0), float(m * n))
    # So few contexts tell their own variance badly: as much wider as Student's t is.
    student = float(stdtrit(max(1, fewer - 1), (1 + LEVEL) / 2))
    trials *= (NormalDist().inv_cdf((1 + LEVEL) / 2) / student) ** 2
    interval = proportion_interval(area * trials, trials, level=LEVEL)
    return Measure(value=area, low=interval.low, high=interval.high, n=m + n)


def _bessel(n: int) -> float:
    return n / (n - 1) if n > 1 else 1.0


def _share_below(reference: FloatArray, values: FloatArray) -> FloatArray:
    """Return for each value the share of the held ones below it, ties counted half."""
    ordered = np.sort(reference)
    left, right = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
    return np.asarray((left + right) / (2 * ordered.size), dtype=np.float64)


def _sum_at(
    table: OutcomeTable, outcome: IndexArray, weights: FloatArray | None = None
) -> FloatArray:
    """Count records by context and outcome."""
    k, n_contexts = len(table.names), int(table.context_codes.max()) + 1
    flat = np.bincount(table.context_codes * k + outcome, weights, n_contexts * k)
    return np.asarray(flat, dtype=np.float64).reshape(n_contexts, k)
