"""The gate's closer look: each decision, and each right outcome of a decision, by itself.

A mean over everything hides a fall on one outcome among many. So each slice is tested by itself, on
every held-out decision, new and earlier:

- Two tests look for a fall, since each sees falls that the other does not. Student's
  one-sided t test over contexts of the mean change, with the standard error of a ratio of sums
  (Cochran, "Sampling Techniques", 1977, section 6.4), sees a small change of most decisions. The
  sign test of contexts where more decisions broke than were fixed, against the reverse (Dixon and
  Mood, "The Statistical Sign Test", Journal of the American Statistical Association, 1946), sees a
  few decisions of which the mean is too unsure. The smaller chance counts, doubled (Bonferroni).
  The bootstrap will not do: 2,000 resamples cannot tell the small chances that many slices call for.
- Slices are many, and one in twenty would look worse by chance: the chances are corrected as Holm's
  "A Simple Sequentially Rejective Multiple Test Procedure" (Scandinavian Journal of Statistics,
  1979) has it, over all the slices looked at. It holds however the slices overlap.
- A slice that is surely worse, but by no more than an allowance, is let pass: with enough rows every
  difference is sure, and of many outcomes some always lose a little. The allowance is larger for an
  outcome: a predecessor that says "no" to everything has hardly any loss where "no" is right, and
  any candidate that is better overall must lose some there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.calibration.bins import FloatArray
from steelyard.evaluations.gate_wire import BeforeAfter, GateChange, GateSlice
from steelyard.evaluations.measures.comparison import Pairing, count_flips
from steelyard.evaluations.measures.records import IndexArray, RecordMeasures, Records
from steelyard.proof.differences import LEVEL, sum_by_context

#: Contexts without which a mean is not judged.
LEAST_CONTEXTS = 10
#: How much worse a decision may become: nats of loss, or of a scaled reward of 0 to 1.
DECISION_ALLOWANCE = 0.05
#: How much worse an outcome may become, by measure; 0.2 nats are a fifth off its probability.
OUTCOME_ALLOWANCES = {"loss": 0.2, "scaled_reward": 0.1}
#: How likely it is that any slice is called worse where none is.
SLICE_ERROR = 0.05
#: The most slices of either kind that a gate lists.
MAX_LISTED = 100


@dataclass(frozen=True, slots=True)
class JudgedSlices:
    """Every slice looked at, those that became worse first, then those of most decisions."""

    by_decision: tuple[GateSlice, ...]
    by_outcome: tuple[GateSlice, ...]


def judge_slices(pairing: Pairing, after: Records) -> JudgedSlices:
    """Compare two models on each decision and on each right outcome.

    Slices over fewer than 10 contexts are never worse, and do not count among those looked at.
    ``after`` are the candidate's records, which the pairing was made with.
    """
    name = compared_measure(pairing.after)
    counted = pairing.take(np.flatnonzero(pairing.after.counted[name]))
    slice_pairings = []
    for keyed in (_decision_of(after), _outcome_of(after, counted)):
        for key, pairs in _slices(counted, keyed):
            slice_pairings.append((key, counted.take(pairs)))
    tested = [_Tested(key, slice_pairing, name) for key, slice_pairing in slice_pairings]
    corrected = holm([tested_slice.p_value for tested_slice in tested])
    judged = [
        tested_slice.wire(p_value) for tested_slice, p_value in zip(tested, corrected, strict=True)
    ]
    judged.sort(key=lambda gate_slice: (not gate_slice.worse, -gate_slice.decisions))
    return JudgedSlices(
        tuple(gate_slice for gate_slice in judged if not isinstance(gate_slice.outcome, str)),
        tuple(gate_slice for gate_slice in judged if isinstance(gate_slice.outcome, str)),
    )


def holm(p_values: list[float | None]) -> list[float | None]:
    """Correct chances for how many there are, as Holm has it; None stays None and does not count.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    given = [(p_value, place) for place, p_value in enumerate(p_values) if p_value is not None]
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p_value, place) in enumerate(sorted(given)):
        largest = max(largest, min(1.0, (len(given) - rank) * p_value))
        corrected[place] = largest
    return corrected


def compared_measure(measures: RecordMeasures) -> str:
    """Return the gate's measure: ``loss`` with targets, ``scaled_reward`` with rewards."""
    return "loss" if measures.right == "accuracy" else "scaled_reward"


_Key = tuple[str, str | None]


class _Tested:
    """One slice, its mean change and how likely one so bad would be."""

    def __init__(self, key: _Key, pairing: Pairing, name: str) -> None:
        self._key, self._pairing, self._name = key, pairing, name
        old, new = pairing.before.values[name], pairing.after.values[name]
        sums = pairing.paired([name]).sums
        self._n_contexts = len(sums)
        self._before, self._after = float(old.mean()), float(new.mean())
        self._change = self._after - self._before
        self._error = _standard_error(sums)
        sign = 1.0 if name == "loss" else -1.0
        self._harm = sign * self._change
        self.p_value: float | None = None
        if self._n_contexts >= LEAST_CONTEXTS:
            by_mean = _chance(self._harm, self._error, self._n_contexts - 1)
            self.p_value = min(1.0, 2 * min(by_mean, _sign_chance(pairing)))

    def wire(self, p_value: float | None) -> GateSlice:
        decision_id, outcome = self._key
        pairing, right = self._pairing, self._pairing.after.right
        allowance = DECISION_ALLOWANCE if outcome is None else OUTCOME_ALLOWANCES[self._name]
        half = _half_width(self._error, self._n_contexts - 1)
        figures: dict[str, Any] = {
            self._name: GateChange(
                before=self._before,
                after=self._after,
                change=self._change,
                low=self._change - half,
                high=self._change + half,
            ),
            right: BeforeAfter(
                before=float(pairing.before.values[right].mean()),
                after=float(pairing.after.values[right].mean()),
            ),
        }
        if outcome is not None:
            figures["outcome"] = outcome
        return GateSlice(
            decision_id=decision_id,
            decisions=len(pairing),
            contexts=self._n_contexts,
            flips=count_flips(pairing.before, pairing.after),
            p_value=p_value,
            worse=p_value is not None and p_value < SLICE_ERROR and self._harm > allowance,
            **figures,
        )


def _decision_of(after: Records) -> Callable[[int, int], _Key]:
    return lambda _, row: (after.decision_ids[row], None)


def _outcome_of(after: Records, pairing: Pairing) -> Callable[[int, int], _Key]:
    """Key a pair by its decision and its right outcome, the first on a tie."""
    truth = pairing.after.truth
    return lambda pair, row: (after.decision_ids[row], after.outcomes_of(row)[int(truth[pair])])


def _slices(
    pairing: Pairing, keyed: Callable[[int, int], _Key]
) -> Iterator[tuple[_Key, IndexArray]]:
    pairs_of: dict[_Key, list[int]] = {}
    for pair, row in enumerate(pairing.after_rows.tolist()):
        pairs_of.setdefault(keyed(pair, row), []).append(pair)
    for key in sorted(pairs_of, key=lambda key: (key[0], key[1] or "")):
        yield key, np.array(pairs_of[key], dtype=np.intp)


def _standard_error(sums: FloatArray) -> float:
    """Return the standard error of the ratio of two sums over contexts; 0 over one context."""
    n = len(sums)
    if n < 2:
        return 0.0
    totals = sums.sum(axis=0)
    residuals = sums[:, 0] - totals[0] / totals[1] * sums[:, 1]
    return float(np.sqrt(n / (n - 1) * (residuals**2).sum()) / totals[1])


def _chance(harm: float, error: float, freedom: int) -> float:
    from scipy.special import stdtr  # noqa: PLC0415 - only a gate needs it

    if error <= 0:
        return 0.0 if harm > 0 else 1.0
    return float(stdtr(freedom, -harm / error))


def _sign_chance(pairing: Pairing) -> float:
    """Return the sign test's chance of as many contexts broken among those broken or fixed."""
    from scipy.special import bdtrc  # noqa: PLC0415

    right = pairing.after.right
    hits = pairing.after.values[right] - pairing.before.values[right]
    net = sum_by_context(hits[:, None], pairing.context_codes)[:, 0]
    broken, fixed = int((net < 0).sum()), int((net > 0).sum())
    return float(bdtrc(broken - 1, broken + fixed, 0.5)) if broken else 1.0


def _half_width(error: float, freedom: int) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(freedom, (1 + LEVEL) / 2)) * error if freedom > 0 else 0.0
