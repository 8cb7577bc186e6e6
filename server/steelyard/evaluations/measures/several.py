"""Several labels at once: F1 over all yes/no decisions of two models on the same contexts.

F1 of a label is twice the answers of "yes" that are right, over answers and labels of "yes". Micro
F1 sums both over labels, macro F1 is the mean over labels. The intervals weigh contexts at random and
add one that was not seen, as ``steelyard.calibration.intervals.ratio_intervals`` does: all wrong for
the lower end, all right for the upper one, and of a change right in one of the two alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steelyard.calibration.bins import FloatArray
from steelyard.calibration.intervals import weighed_totals
from steelyard.evaluations.gate_wire import GateF1, SeveralLabels
from steelyard.evaluations.measures.comparison import Pairing
from steelyard.evaluations.measures.records import Records
from steelyard.proof.differences import LEVEL, Bootstrap, sum_by_context
from steelyard.wire.measures import Measure

#: Labels under which there are not several.
LEAST_LABELS = 2
_YES = "yes"


def several_labels(pairing: Pairing, after: Records, bootstrap: Bootstrap) -> SeveralLabels | None:
    """Return F1 over the yes/no decisions of paired records; None of fewer than two decisions.

    ``after`` are the records that the pairing was made with.
    """
    rows = pairing.after_rows
    is_binary = (after.kinds[rows] == "binary") & np.array(
        [_YES in after.outcomes_of(int(row)) for row in rows], dtype=bool
    )
    chosen = np.flatnonzero(is_binary)
    names, labels = np.unique(after.decision_ids[rows[chosen]].astype(np.str_), return_inverse=True)
    if after.supervision != "targets" or len(names) < LEAST_LABELS:
        return None
    part = pairing.take(chosen)
    yes = np.array([after.outcomes_of(int(row)).index(_YES) for row in part.after_rows])
    is_label = labels[:, None] == np.arange(len(names))
    truth = (part.after.truth == yes)[:, None] & is_label
    columns = []
    for side in (part.before, part.after):
        answered = (side.top == yes)[:, None] & is_label
        columns += [2.0 * (answered & truth), 1.0 * answered + truth]
    sums = sum_by_context(np.hstack(columns), part.context_codes)
    micro, macro = (_compare(sums, f1, len(names), len(part), bootstrap) for f1 in (_micro, _macro))
    if micro is None or macro is None:
        return None
    return SeveralLabels(labels=len(names), contexts=len(sums), micro=micro, macro=macro)


_F1 = Callable[[FloatArray, FloatArray], FloatArray]


def _micro(right: FloatArray, bases: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(right.sum(axis=-1) / bases.sum(axis=-1))


def _macro(right: FloatArray, bases: FloatArray) -> FloatArray:
    # A label that is neither answered nor true has no F1, and is left out.
    has = bases > 0
    ratios = np.divide(right, bases, out=np.zeros_like(bases), where=has)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(ratios.sum(axis=-1) / has.sum(axis=-1))


def _compare(
    sums: FloatArray, f1: _F1, n_labels: int, n_decisions: int, bootstrap: Bootstrap
) -> GateF1 | None:
    """Return F1 before and after, and the change; None where either divides by 0."""
    totals = sums.sum(axis=0).reshape(2, 2, n_labels)
    before, after = (float(f1(right, bases)) for right, bases in totals)
    if np.isnan(before) or np.isnan(after):
        return None
    ends: dict[str, tuple[float | None, float | None]] = dict.fromkeys(
        ("before", "after", "change"), (None, None)
    )
    if len(sums) > 1:
        drawn, unseen = weighed_totals(sums, n_resamples=bootstrap.n_resamples, seed=bootstrap.seed)
        sides = drawn.reshape(-1, 2, 2, n_labels)
        sizes = totals[:, 1] / len(sums)
        low = (1 - LEVEL) / 2

        def with_unseen(side: int, is_right: bool) -> FloatArray:
            more = unseen[:, None] * sizes[side]
            return f1(sides[:, side, 0] + is_right * more, sides[:, side, 1] + more)

        worst = [with_unseen(side, False) for side in (0, 1)]
        best = [with_unseen(side, True) for side in (0, 1)]
        for side, (name, value) in enumerate((("before", before), ("after", after))):
            ends[name] = _ends(worst[side], best[side], value, low)
        ends["change"] = _ends(worst[1] - best[0], best[1] - worst[0], after - before, low)
    return GateF1(
        before=Measure(value=before, low=ends["before"][0], high=ends["before"][1], n=n_decisions),
        after=Measure(value=after, low=ends["after"][0], high=ends["after"][1], n=n_decisions),
        change=after - before,
        low=ends["change"][0],
        high=ends["change"][1],
    )


def _ends(worst: FloatArray, best: FloatArray, value: float, low: float) -> tuple[float, float]:
    return (
        min(float(np.nanquantile(worst, low)), value),
        max(float(np.nanquantile(best, 1 - low)), value),
    )
