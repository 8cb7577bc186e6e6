"""Two models on the same decisions: pairing, changes, flips and their laws."""

from __future__ import annotations

import random
from dataclasses import replace
from math import comb

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.calibration.intervals import mean_interval
from steelyard.evaluations.measures.comparison import (
    compare_evaluations,
    mcnemar_p_value,
    pair_records,
)
from steelyard.evaluations.measures.records import UnmeasurableError
from steelyard.evaluations.wire import Change, EvaluationComparison
from steelyard.proof.differences import Bootstrap
from support.models.scored_records import (
    QUICK,
    ece_by_loops,
    make_rows,
    mean,
    records_from_rows,
    rescore,
    row_measures,
    sharpen,
)


def compare(before, after, **options):
    options.setdefault("bootstrap", QUICK)
    return compare_evaluations(records_from_rows(before), records_from_rows(after), **options)


def changes(struct):
    return {
        name: value
        for name in struct.__struct_fields__
        if isinstance(value := getattr(struct, name), Change)
    }


@pytest.mark.parametrize("supervision", ["targets", "rewards"])
def test_changes_and_flips_equal_loops(supervision):
    before = make_rows(1, supervision=supervision)
    after = rescore(before, 2)
    found = compare(before, after)
    old, new = [row_measures(row) for row in before], [row_measures(row) for row in after]
    right = "accuracy" if supervision == "targets" else "picked_best"
    for name, change in changes(found.overall).items():
        if name == "ece":
            assert change.before == pytest.approx(ece_by_loops(before))
            assert change.after == pytest.approx(ece_by_loops(after))
            continue
        assert change.before == pytest.approx(mean(row[name] for row in old if name in row))
        assert change.after == pytest.approx(mean(row[name] for row in new if name in row))
        assert change.change == pytest.approx(change.after - change.before)
        assert change.low <= change.change <= change.high
        assert change.n == sum(name in row for row in old)
    pairs = [(a[right], b[right]) for a, b in zip(old, new, strict=True) if right in a]
    flips = found.overall.flips
    assert flips.fixed == pairs.count((0, 1))
    assert flips.broken == pairs.count((1, 0))
    assert flips.same_right == pairs.count((1, 1))
    assert flips.same_wrong == pairs.count((0, 0))
    assert found.overall.p_value == mcnemar_p_value(flips.fixed, flips.broken)
    assert found.flipped_total == len(found.flipped) == flips.fixed + flips.broken
    assert found.method == ("sft" if supervision == "targets" else "reward")


def test_the_interval_is_of_paired_differences_over_contexts():
    before = make_rows(3)
    after = rescore(before, 4)
    found = compare(before, after, bootstrap=Bootstrap(seed=9)).overall.loss
    differences = [
        row_measures(b)["loss"] - row_measures(a)["loss"]
        for a, b in zip(before, after, strict=True)
    ]
    contexts = [row.context_sha256 for row in before]
    swings = [
        np.log(np.divide(a.probabilities, b.probabilities))
        for a, b in zip(before, after, strict=True)
    ]
    least, most = min(map(min, swings)), max(map(max, swings))
    expected = mean_interval(differences, clusters=contexts, least=least, most=most, seed=9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["targets", "rewards"]))
@settings(deadline=None, max_examples=15)
def test_identical_predictions_change_nothing_and_flip_nothing(seed, supervision):
    rows = make_rows(seed, 20, supervision=supervision)
    found = compare(rows, rows)
    for change in changes(found.overall).values():
        assert change.change == 0.0
        assert (change.low, change.high) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert (found.overall.flips.fixed, found.overall.flips.broken) == (0, 0)
    assert (found.flipped, found.overall.p_value) == ([], 1.0)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["targets", "rewards"]))
@settings(deadline=None, max_examples=15)
def test_swapping_before_and_after_negates_the_change(seed, supervision):
    before = make_rows(seed, 20, supervision=supervision)
    after = rescore(before, seed)
    there, back = compare(before, after), compare(after, before)
    for name, change in changes(there.overall).items():
        other = getattr(back.overall, name)
        assert (other.before, other.after) == (change.after, change.before)
        assert other.change == -change.change
        assert (other.low, other.high) == pytest.approx((-change.high, -change.low), abs=1e-12)
    one, two = there.overall.flips, back.overall.flips
    assert (one.fixed, one.broken) == (two.broken, two.fixed)
    assert (one.same_right, one.same_wrong) == (two.same_right, two.same_wrong)
    assert there.overall.p_value == back.overall.p_value


@pytest.mark.parametrize("supervision", ["targets", "rewards"])
def test_permuting_records_changes_nothing_at_all(supervision):
    before = make_rows(5, supervision=supervision)
    # Two decisions alike in all but their probabilities.
    before += rescore(before[:6], 1)
    after = rescore(before, 6)
    shuffle = random.Random(3)
    one = compare(before, after)
    two = compare(shuffle.sample(before, len(before)), shuffle.sample(after, len(after)))
    assert msgspec.json.encode(one) == msgspec.json.encode(two)


def test_rows_of_one_model_are_counted_and_left_out():
    before = make_rows(7, 10)
    after = rescore(before, 8)
    found = compare(before[:20], after[5:])
    assert (found.unpaired.before, found.unpaired.after) == (5, 10)
    assert found.overall == compare(before[5:20], after[5:20]).overall


def test_nothing_in_common_is_refused():
    before = make_rows(9, 5)
    elsewhere = [replace(row, context_sha256="x" + row.context_sha256) for row in before]
    with pytest.raises(UnmeasurableError, match="None of 15 and 15"):
        compare(before, elsewhere)
    relabelled = [replace(row, targets=tuple(reversed(row.targets))) for row in before]
    changed = [(a, b) for a, b in zip(before, relabelled, strict=True) if a.targets != b.targets]
    with pytest.raises(UnmeasurableError, match="None of"):
        compare([a for a, _ in changed], [b for _, b in changed])
    with pytest.raises(UnmeasurableError, match="rewards"):
        compare(before, make_rows(9, 5, supervision="rewards"))


def test_the_calibration_error_needs_fifty_decisions():
    rows = make_rows(10, 17)
    assert compare(rows[:49], rescore(rows[:49], 1)).overall.ece is None
    assert compare(rows[:50], rescore(rows[:50], 1)).overall.ece.n == 50


def test_groups_cut_the_pairs_by_decision_and_by_labels():
    before = make_rows(11, 12)
    after = rescore(before, 12)
    side = ["new" if index < 9 else None for index in range(len(after))]
    found = compare(before, after, groups={"side": side})
    by_decision, by_side = found.groups
    assert {held.value for held in by_decision.slices} == {"spam", "topic", "tone"}
    assert sum(held.metrics.n for held in by_decision.slices) == len(after)
    assert [(held.value, held.metrics.n) for held in by_side.slices] == [("new", 9)]
    assert by_side.slices[0].metrics == compare(before[:9], after[:9]).overall
    with pytest.raises(UnmeasurableError, match="1 values for 36"):
        compare(before, after, groups={"side": ["new"]})


def test_flipped_records_have_both_answers():
    before = make_rows(13, 20)
    found = compare(before, sharpen(before, 0.9), max_flipped=3)
    assert found.overall.flips.broken == 0
    assert len(found.flipped) == 3 < found.flipped_total
    assert {flipped.flip for flipped in found.flipped} == {"fixed"}
    for flipped in found.flipped:
        assert flipped.right == [flipped.after] != [flipped.before]
    sureness = [flipped.p_before + flipped.p_after for flipped in found.flipped]
    assert sureness == sorted(sureness, reverse=True)


def test_pairing_the_copies_of_a_decision_wastes_none():
    rows = make_rows(14, 4)
    copies = rows + rows[:3]
    pairing = pair_records(records_from_rows(copies), records_from_rows(copies[1:]))
    assert (len(pairing), pairing.n_unpaired_before, pairing.n_unpaired_after) == (14, 1, 0)


def test_a_comparison_survives_the_wire():
    rows = make_rows(15, 20)
    found = compare(rows, rescore(rows, 1))
    assert msgspec.json.decode(msgspec.json.encode(found), type=EvaluationComparison) == found


@pytest.mark.parametrize(("fixed", "broken"), [(0, 1), (3, 9), (10, 10), (40, 2), (0, 0)])
def test_mcnemar_equals_the_binomial_summed(fixed, broken):
    n = fixed + broken
    tail = sum(comb(n, k) for k in range(min(fixed, broken) + 1)) / 2**n
    assert mcnemar_p_value(fixed, broken) == pytest.approx(min(1.0, 2 * tail))


def test_mcnemar_by_hand_and_at_scale():
    assert mcnemar_p_value(0, 6) == pytest.approx(2 / 64)
    assert mcnemar_p_value(8, 2) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert mcnemar_p_value(0, 5000) == 0.0
    # Near the normal approximation: z = 2, with the continuity correction 1.98.
    assert mcnemar_p_value(4900, 5100) == pytest.approx(0.0466, abs=5e-4)


def test_changed_records_are_wrong_in_both_with_another_answer():
    before = make_rows(21, 40)
    after = rescore(before, 22)
    found = compare(before, after)

    def top(row):
        return row.outcomes[max(range(len(row.outcomes)), key=row.probabilities.__getitem__)]

    def right(row):
        return row.outcomes[max(range(len(row.outcomes)), key=row.targets.__getitem__)]

    changed = [
        (old.context_sha256, old.decision_id, top(old), top(new))
        for old, new in zip(before, after, strict=True)
        if right(old) not in (top(old), top(new)) and top(old) != top(new)
    ]
    assert found.changed_total == len(changed) > 0
    assert sorted(changed) == sorted(
        (one.context_sha256, one.decision_id, one.before, one.after) for one in found.changed
    )
    sureness = [one.p_before + one.p_after for one in found.changed]
    assert sureness == sorted(sureness, reverse=True)
    assert {one.flip for one in found.changed} == {"changed"}
    assert compare(before, before).changed == []
