"""Two models on the same decisions, paired one by one.

A change's interval is over contexts, of the paired differences: the common part of the two models,
hard contexts above all, cancels out. A context that was not seen is allowed for, as in
``steelyard.evaluations.measures.sampling``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from steelyard.calibration.bins import N_BINS, FloatArray, bin_columns, ece_from_totals
from steelyard.calibration.intervals import weighed_totals
from steelyard.calibration.metrics import LEAST_PROBABILITY
from steelyard.calibration.reliability import ece_ends
from steelyard.evaluations import wire
from steelyard.evaluations.measures.records import (
    PROPORTIONS,
    BoolArray,
    IndexArray,
    Range,
    RecordMeasures,
    Records,
    UnmeasurableError,
    measure_records,
)
from steelyard.evaluations.measures.summary import MAX_SLICES, group_rows
from steelyard.proof.differences import LEVEL, Bootstrap, Paired, sum_by_context

#: Under so many decisions a calibration error says nothing: it is null.
LEAST_FOR_ECE = 50

#: The most flipped decisions that a comparison lists.
MAX_FLIPPED = 500


#: The least and the greatest change of each pair, float arrays of shape (n_pairs,).
Swing: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """Records of two models on the same decisions, as pairs.

    Row i of ``before_rows`` and row i of ``after_rows`` are the same decision on the same context;
    ``before`` and ``after`` measure them in that order. ``context_codes`` are equal where contexts
    are, in the order of their names. ``swings`` has for each measure that is no proportion the least
    and the greatest change of each pair, whichever outcome is right.
    """

    before_rows: IndexArray
    after_rows: IndexArray
    context_codes: IndexArray
    before: RecordMeasures
    after: RecordMeasures
    n_unpaired_before: int
    n_unpaired_after: int
    swings: dict[str, Swing]

    def __len__(self) -> int:
        return len(self.before_rows)

    def take(self, pairs: IndexArray) -> Pairing:
        """Return some of the pairs; the unpaired rows are those of the whole."""
        return Pairing(
            self.before_rows[pairs],
            self.after_rows[pairs],
            self.context_codes[pairs],
            self.before.take(pairs),
            self.after.take(pairs),
            self.n_unpaired_before,
            self.n_unpaired_after,
            {name: (low[pairs], high[pairs]) for name, (low, high) in self.swings.items()},
        )

    def counted_by(self, name: str) -> Pairing:
        """Return the pairs that a measure counts; paired records have one label, so both or neither."""
        return self.take(np.flatnonzero(self.after.counted[name]))

    def paired(self, names: Sequence[str]) -> Paired:
        """Return the values of measures, a column each."""
        old, new = (
            np.stack([side.values[name] for name in names], axis=1)
            for side in (self.before, self.after)
        )
        return Paired(old, new, self.context_codes)

    @property
    def is_unchanged(self) -> bool:
        """Whether both models gave every pair the same probabilities."""
        return not any(low.any() or high.any() for low, high in self.swings.values())

    def range_of(self, name: str) -> Range:
        """Return the least and the greatest change of a measure that one decision could make.

        An answer that is right or wrong can change by one either way, unless all answers are the same.
        A measure without bounds can change as far as any pair's answers would have, had another outcome
        been right.
        """
        if name in PROPORTIONS:
            return (0.0, 0.0) if self.is_unchanged else (-1.0, 1.0)
        low, high = self.swings[name]
        return float(low.min()), float(high.max())


def pair_records(before: Records, after: Records) -> Pairing:
    """Pair the records of two models, in the order of contexts and then decisions.

    Two records are a pair when context, decision, outcomes and label are equal. A dataset may hold
    several such records; they are paired in the order of their probabilities, so that the order of
    records changes nothing. O(n log n) in Python: about a second for 100,000 records. Raise
    ``UnmeasurableError`` when one has targets and the other rewards, or nothing pairs.
    """
    if before.supervision != after.supervision:
        raise UnmeasurableError(
            f"One evaluation has {before.supervision} and the other {after.supervision}; compare "
            "evaluations of one dataset."
        )
    rows_before, rows_after = _rows_by_key(before), _rows_by_key(after)
    left: list[int] = []
    right: list[int] = []
    for key in sorted(rows_before.keys() & rows_after.keys()):
        pairs = list(zip(rows_before[key], rows_after[key], strict=False))
        left.extend(pair[0] for pair in pairs)
        right.extend(pair[1] for pair in pairs)
    if not left:
        raise UnmeasurableError(
            f"None of {len(before)} and {len(after)} decisions is in both evaluations; compare "
            "evaluations of one dataset."
        )
    before_rows, after_rows = np.array(left, dtype=np.intp), np.array(right, dtype=np.intp)
    return Pairing(
        before_rows,
        after_rows,
        before.context_codes[before_rows],
        measure_records(before).take(before_rows),
        measure_records(after).take(after_rows),
        len(before) - len(left),
        len(after) - len(right),
        _swings(before, after, before_rows, after_rows),
    )


def compare_evaluations(
    before: Records,
    after: Records,
    *,
    groups: Mapping[str, Sequence[str | None]] | None = None,
    bootstrap: Bootstrap | None = None,
    max_flipped: int = MAX_FLIPPED,
) -> wire.EvaluationComparison:
    """Compare two evaluations on the decisions that both scored; a change is after minus before.

    ``groups`` are names of properties to their value for each record of ``after``; always cut by
    decision. At most ``max_flipped`` decisions are listed. Raise ``UnmeasurableError`` when nothing
    pairs, or a property has not one value a record.
    """
    bootstrap = bootstrap or Bootstrap()
    pairing = pair_records(before, after)
    properties: dict[str, Sequence[str | None]] = {
        "decision": list(after.decision_ids),
        **(groups or {}),
    }
    for name, values in properties.items():
        if len(values) != len(after):
            raise UnmeasurableError(
                f"{name} has {len(values)} values for {len(after)} records; give one each."
            )
    flips = _Flipped(before, after, pairing)
    flipped, changed = flips.pairs()
    return wire.EvaluationComparison(
        method="sft" if after.supervision == "targets" else "reward",
        unpaired=wire.Unpaired(before=pairing.n_unpaired_before, after=pairing.n_unpaired_after),
        overall=paired_measures(pairing, bootstrap),
        groups=[
            _comparison_table(pairing, name, values, bootstrap)
            for name, values in properties.items()
        ],
        flipped=[flips.record(pair) for pair in flipped[:max_flipped].tolist()],
        flipped_total=len(flipped),
        changed=[flips.record(pair) for pair in changed[:max_flipped].tolist()],
        changed_total=len(changed),
    )


def paired_measures(pairing: Pairing, bootstrap: Bootstrap) -> wire.PairedMeasures:
    """Return the changes over one pair or more; measures without a value are left out.

    McNemar's test takes decisions for independent of each other; where several share a context it
    is too sure of itself, and the interval of the change of accuracy is the one to trust.
    """
    before, after = pairing.before, pairing.after
    figures: dict[str, Any] = measure_changes(pairing, list(before.values), bootstrap)
    if before.right == "accuracy":
        figures["ece"] = _ece_change(pairing, bootstrap)
    flips = count_flips(before, after)
    return wire.PairedMeasures(
        n=len(pairing),
        contexts=len(np.unique(pairing.context_codes)),
        flips=flips,
        p_value=mcnemar_p_value(flips.fixed, flips.broken),
        **figures,
    )


def measure_changes(
    pairing: Pairing, names: Sequence[str], bootstrap: Bootstrap
) -> dict[str, wire.Change]:
    """Return the change of each measure that counts a pair; over one context without interval."""
    # Measures that count the same records share their resamples.
    alike: dict[bytes, list[str]] = {}
    for name in names:
        alike.setdefault(pairing.after.counted[name].tobytes(), []).append(name)
    changes: dict[str, wire.Change] = {}
    for group in alike.values():
        part = pairing.counted_by(group[0])
        if not len(part):
            continue
        ranges = [part.range_of(name) for name in group]
        differences = part.paired(group).differences(
            [low for low, _ in ranges], [high for _, high in ranges], bootstrap
        )
        for name, difference in zip(group, differences, strict=True):
            changes[name] = wire.Change(**difference._asdict())
    return {name: changes[name] for name in names if name in changes}


def count_flips(before: RecordMeasures, after: RecordMeasures) -> wire.Flips:
    """Count pairs by whether each model's top outcome is right; those of equal rewards do not count."""
    counted = after.counted[after.right]
    was, is_now = _is_right(before)[counted], _is_right(after)[counted]
    return wire.Flips(
        fixed=int((~was & is_now).sum()),
        broken=int((was & ~is_now).sum()),
        same_right=int((was & is_now).sum()),
        same_wrong=int((~was & ~is_now).sum()),
    )


def paired_ece(pairing: Pairing) -> tuple[float, float] | None:
    """Return the calibration error before and after, or None under 50 decisions or with rewards."""
    if pairing.before.right != "accuracy" or len(pairing) < LEAST_FOR_ECE:
        return None
    old, new = (_ece_columns(side).sum(axis=0) for side in (pairing.before, pairing.after))
    return _ece(old), _ece(new)


def mcnemar_p_value(fixed: int, broken: int) -> float:
    """Return the two-sided p-value of McNemar's exact test; 1 without flips.

    ``fixed`` and ``broken`` are the decisions that one model alone has right.

    References
    ----------
    McNemar, "Note on the Sampling Error of the Difference between Correlated Proportions or
    Percentages", Psychometrika, 1947.

    Examples
    --------
    >>> round(mcnemar_p_value(1, 5), 12), mcnemar_p_value(0, 0)
    (0.21875, 1.0)
    """
    n, fewer = fixed + broken, min(fixed, broken)
    # In logarithms: whole numbers of thousands of flips have thousands of digits.
    most = math.lgamma(n + 1) - n * math.log(2)
    tail = math.fsum(
        math.exp(most - math.lgamma(k + 1) - math.lgamma(n - k + 1)) for k in range(fewer + 1)
    )
    return min(1.0, 2 * tail)


def _comparison_table(
    pairing: Pairing, by: str, values: Sequence[str | None], bootstrap: Bootstrap
) -> wire.ComparisonTable:
    groups = group_rows((values[row] for row in pairing.after_rows), largest_first=True)
    return wire.ComparisonTable(
        by=by,
        slices=[
            wire.ComparisonSlice(
                value=value, metrics=paired_measures(pairing.take(pairs), bootstrap)
            )
            for value, pairs in groups[:MAX_SLICES]
        ],
        unlisted=max(0, len(groups) - MAX_SLICES),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Flipped:
    """Pairs whose answer changed, the surest first, and the kind of each change."""

    before: Records
    after: Records
    pairing: Pairing

    def pairs(self) -> tuple[IndexArray, IndexArray]:
        """Return those right in one of the two, and those wrong in both with another answer."""
        pairing = self.pairing
        counted = pairing.after.counted[pairing.after.right]
        was, is_now = _is_right(pairing.before), _is_right(pairing.after)
        says_other = np.array(
            [
                self._answer_before(pair) != self._answer_after(pair) if is_wrong else False
                for pair, is_wrong in enumerate((~was & ~is_now).tolist())
            ],
            dtype=bool,
        )
        sureness = pairing.before.p_top + pairing.after.p_top

        def surest(chosen: BoolArray) -> IndexArray:
            pairs = np.flatnonzero(chosen & counted)
            return pairs[np.argsort(-sureness[pairs], kind="stable")]

        return surest(was != is_now), surest(says_other)

    def record(self, pair: int) -> wire.FlippedRecord:
        """Return a pair as the wire tells it."""
        pairing, row = self.pairing, int(self.pairing.after_rows[pair])
        names, labels = self.after.outcomes_of(row), self.after.labels_of(row)
        if self.after.supervision == "targets":
            right = [names[int(labels.argmax())]]
        else:
            right = [names[index] for index in np.flatnonzero(labels == labels.max()).tolist()]
        was, is_now = _is_right(pairing.before)[pair], _is_right(pairing.after)[pair]
        return wire.FlippedRecord(
            context_sha256=self.after.contexts[row],
            decision_id=self.after.decision_ids[row],
            flip="fixed" if is_now else "broken" if was else "changed",
            right=right,
            before=self._answer_before(pair),
            after=self._answer_after(pair),
            p_before=float(pairing.before.p_top[pair]),
            p_after=float(pairing.after.p_top[pair]),
        )

    def _answer_before(self, pair: int) -> str:
        names = self.before.outcomes_of(int(self.pairing.before_rows[pair]))
        return names[int(self.pairing.before.top[pair])]

    def _answer_after(self, pair: int) -> str:
        names = self.after.outcomes_of(int(self.pairing.after_rows[pair]))
        return names[int(self.pairing.after.top[pair])]


def _ece_change(pairing: Pairing, bootstrap: Bootstrap) -> wire.Change | None:
    ece_pair = paired_ece(pairing)
    if ece_pair is None:
        return None
    columns = np.hstack([_ece_columns(pairing.before), _ece_columns(pairing.after)])
    sums = sum_by_context(columns, pairing.context_codes)
    low = high = None
    if len(sums) > 1:
        unchanged = (0.0, 0.0)
        low, high = (
            unchanged
            if pairing.is_unchanged
            else _ece_change_ends(pairing, ece_pair, sums, bootstrap)
        )
    before, after = ece_pair
    return wire.Change(
        before=before, after=after, change=after - before, low=low, high=high, n=len(pairing)
    )


def _ece_change_ends(
    pairing: Pairing, errors_seen: tuple[float, float], sums: FloatArray, bootstrap: Bootstrap
) -> tuple[float, float]:
    """Return the interval of a change of calibration error.

    Half the width of the percentiles, with a context more that is all wrong in one of the two, and
    to it the most that chance alone may have added to either error, which it does most to that of a
    calibrated model.
    """
    by_chance = []
    for side, error in zip((pairing.before, pairing.after), errors_seen, strict=True):
        interval = ece_ends(
            side.p_top,
            side.values["accuracy"],
            pairing.context_codes,
            level=LEVEL,
            n_resamples=bootstrap.n_resamples,
            seed=bootstrap.seed,
        )
        by_chance.append(error if interval is None else error - interval.low)
    change = errors_seen[1] - errors_seen[0]
    drawn, unseen = weighed_totals(sums, n_resamples=bootstrap.n_resamples, seed=bootstrap.seed)
    totals = drawn.reshape(-1, 2, N_BINS, 3)
    weight = totals[:, 0, :, 0].sum(axis=-1)
    extra = unseen * (sums[:, : 3 * N_BINS : 3].sum() / len(sums))
    errors = ece_from_totals(totals)
    moved = (errors[:, 1] - errors[:, 0]) * weight
    low = float(np.quantile((moved - extra) / (weight + extra), (1 - LEVEL) / 2))
    high = float(np.quantile((moved + extra) / (weight + extra), (1 + LEVEL) / 2))
    half = (high - low) / 2
    return change - half - by_chance[1], change + half + by_chance[0]


def _ece_columns(measures: RecordMeasures) -> FloatArray:
    return bin_columns(measures.p_top, measures.values["accuracy"])


def _ece(totals: FloatArray) -> float:
    return float(ece_from_totals(totals.reshape(N_BINS, 3)))


def _is_right(measures: RecordMeasures) -> BoolArray:
    return np.asarray(measures.values[measures.right] > 0, dtype=bool)


def _swings(
    before: Records, after: Records, before_rows: IndexArray, after_rows: IndexArray
) -> dict[str, Swing]:
    """Return for each measure the least and the greatest change of each pair, over its outcomes."""
    is_reward = after.supervision == "rewards"
    names = ("expected_reward", "scaled_reward") if is_reward else ("loss", "brier")
    swings = {name: (np.zeros(len(after_rows)), np.zeros(len(after_rows))) for name in names}
    sizes = after.sizes[after_rows]
    for size in np.unique(sizes):
        chosen, places = np.flatnonzero(sizes == size), np.arange(size)
        old = before.probabilities[before.offsets[before_rows[chosen], None] + places]
        new = after.probabilities[after.offsets[after_rows[chosen], None] + places]
        if is_reward:
            # As much probability as changed its outcome, from the worst to the best or back.
            share = np.abs(new - old).sum(axis=1, keepdims=True) / 2
            span = float(np.ptp(after.labels))
            by_outcome = (share * [-span, span], share * [-1.0, 1.0])
        else:
            by_outcome = (
                np.log(np.maximum(old, LEAST_PROBABILITY) / np.maximum(new, LEAST_PROBABILITY)),
                (new**2).sum(axis=1, keepdims=True)
                - (old**2).sum(axis=1, keepdims=True)
                - 2 * (new - old),
            )
        for name, changes in zip(names, by_outcome, strict=True):
            low, high = swings[name]
            low[chosen], high[chosen] = changes.min(axis=1), changes.max(axis=1)
    return swings


_Key = tuple[str, str, tuple[str, ...], tuple[float, ...]]


def _rows_by_key(records: Records) -> dict[_Key, list[int]]:
    row_lists: dict[_Key, list[int]] = {}
    for row in range(len(records)):
        key = (
            records.contexts[row],
            records.decision_ids[row],
            records.outcomes_of(row),
            tuple(records.labels_of(row).tolist()),
        )
        row_lists.setdefault(key, []).append(row)
    for rows in row_lists.values():
        if len(rows) > 1:
            rows.sort(key=lambda row: records.probabilities_of(row).tolist())
    return row_lists
