"""The gate's closer look: a fall on one decision or one outcome is seen, and chance is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.evaluations.measures.comparison import pair_records
from steelyard.evaluations.measures.gate import judge
from steelyard.evaluations.measures.gate_slices import LEAST_CONTEXTS, holm, judge_slices
from steelyard.evaluations.measures.records import UnmeasurableError
from support.models.scored_records import (
    QUICK,
    make_rows,
    mean,
    records_from_rows,
    rescore,
    row_measures,
    sharpen,
)

WRONG = 0.02


def slices_of(before, after):
    sides = records_from_rows(before), records_from_rows(after)
    return judge_slices(pair_records(*sides), sides[1])


def judged(before, after, **options):
    return judge(
        records_from_rows(before),
        records_from_rows(after),
        against="parent",
        is_new=[True] * len(after),
        bootstrap=QUICK,
        **options,
    )


def label_of(row):
    labels = row.targets or row.rewards
    return row.outcomes[labels.index(max(labels))]


def spoil(row):
    """Return nearly all probability to another outcome than the right one."""
    right = row.outcomes.index(label_of(row))
    others = len(row.outcomes) - 1
    spoilt = [WRONG if place == right else (1 - WRONG) / others for place in range(others + 1)]
    return replace(row, probabilities=tuple(spoilt))


@pytest.mark.parametrize("supervision", ["targets", "rewards"])
def test_slices_are_every_decision_and_every_right_outcome(supervision):
    before = make_rows(1, 60, supervision=supervision)
    after = rescore(before, 2)
    found = slices_of(before, after)
    name = "loss" if supervision == "targets" else "scaled_reward"
    pairs = [
        (old, new) for old, new in zip(before, after, strict=True) if name in row_measures(old)
    ]
    assert {one.decision_id for one in found.by_decision} == {"spam", "topic", "tone"}
    assert sum(one.decisions for one in found.by_decision) == len(pairs)
    assert sum(one.decisions for one in found.by_outcome) == len(pairs)
    for one in (*found.by_decision, *found.by_outcome):
        held = [
            (old, new)
            for old, new in pairs
            if old.decision_id == one.decision_id
            and (not isinstance(one.outcome, str) or label_of(old) == one.outcome)
        ]
        compared = getattr(one, name)
        assert one.decisions == one.contexts == len(held)
        assert compared.before == pytest.approx(mean(row_measures(old)[name] for old, _ in held))
        assert compared.after == pytest.approx(mean(row_measures(new)[name] for _, new in held))
        assert compared.low <= compared.change <= compared.high
        assert sum(
            (one.flips.fixed, one.flips.broken, one.flips.same_right, one.flips.same_wrong)
        ) == len(held)
        assert (one.p_value is None) is (one.contexts < LEAST_CONTEXTS)


def answered(rows, p_right):
    """Return binary rows with so much probability on each one's right outcome."""
    given = zip(rows, p_right, strict=True)
    return [
        replace(row, probabilities=(p, 1 - p) if row.targets[0] else (1 - p, p)) for row, p in given
    ]


@pytest.mark.parametrize(("n_spoilt", "others", "which"), [(8, 0.8, "sign"), (0, 0.65, "mean")])
def test_the_chance_is_that_of_two_tests_over_contexts(n_spoilt, others, which):
    rows = [row for row in make_rows(3, 80, soft=False) if row.decision_id == "spam"]
    jitter = np.random.default_rng(0).normal(0.0, 0.05, 80)
    before = answered(rows, [0.7] * 80)
    after = answered(rows, [WRONG] * n_spoilt + (others + jitter[n_spoilt:]).tolist())
    pairs = zip(before, after, strict=True)
    changes = [row_measures(new)["loss"] - row_measures(old)["loss"] for old, new in pairs]
    found = slices_of(before, after)
    (one,) = found.by_decision
    assert (one.flips.fixed, one.flips.broken) == (0, n_spoilt)
    by_mean = stats.ttest_1samp(changes, 0.0, alternative="greater").pvalue
    by_sign = 0.5**n_spoilt
    assert which == ("sign" if by_sign < by_mean else "mean")
    interval = stats.ttest_1samp(changes, 0.0).confidence_interval(0.95)
    assert (one.loss.low, one.loss.high) == pytest.approx(tuple(interval))
    # Three slices are looked at: the decision, and its two outcomes.
    assert len(found.by_outcome) == 2
    alone = 2 * min(by_mean, by_sign)
    assert any(one.p_value == pytest.approx(min(1.0, alone * factor)) for factor in (3, 2, 1))


def test_decisions_on_one_context_count_as_one():
    """Twenty copies of every context are no more evidence, and two are two."""
    rows = [row for row in make_rows(5, 30) if row.decision_id == "spam"]
    other = rescore(rows, 6)
    copies = [
        [replace(row, decision_id="spam", context_sha256=row.context_sha256) for row in side * 20]
        for side in (rows, other)
    ]
    one, many = (slices_of(*sides).by_decision[0] for sides in ((rows, other), copies))
    assert (many.decisions, many.contexts) == (600, 30)
    assert many.loss.high - many.loss.low == pytest.approx(one.loss.high - one.loss.low)
    assert many.p_value == pytest.approx(one.p_value)


def test_a_fall_on_one_outcome_fails_a_candidate_that_is_better_in_all():
    before = make_rows(7, 300, soft=False)
    after = [
        spoil(row) if (row.decision_id, label_of(row)) == ("tone", "3") else row
        for row in sharpen(before, 0.7)
    ]
    verdict = judged(before, after)
    gate = verdict.gate
    assert gate.groups["new"].loss.high + gate.groups["new"].margin < 0
    assert gate.reasons == ["outcome_worse"]
    first = gate.by_outcome[0]
    assert (first.decision_id, first.outcome, first.worse) == ("tone", "3", True)
    assert not any(one.worse for one in (*gate.by_decision, *gate.by_outcome[1:]))
    assert "decision 'tone' where '3' is right" in verdict.sentences[0]


def test_a_fall_on_one_decision_fails_a_candidate_that_is_better_in_all():
    before = make_rows(8, 100, soft=False)
    better = sharpen(before, 0.95)
    after = [
        spoil(row) if row.decision_id == "spam" and n % 2 else row for n, row in enumerate(better)
    ]
    gate = judged(before, after).gate
    assert gate.groups["new"].loss.change < 0
    assert "decision_worse" in gate.reasons
    assert [one.decision_id for one in gate.by_decision if one.worse] == ["spam"]


def test_a_fall_that_is_sure_and_small_is_let_pass():
    rows = [row for row in make_rows(9, 200, soft=False) if row.decision_id == "spam"]
    before = answered(rows, [0.7] * 200)
    for p_right, worse in ((0.67, []), (0.66, [None]), (0.58, [None]), (0.57, [None, "yes", "no"])):
        after = answered(rows, [p_right] * 200)
        found = slices_of(before, after)
        every = (*found.by_decision, *found.by_outcome)
        assert all(one.p_value < 1e-6 for one in every)
        named = [one.outcome if isinstance(one.outcome, str) else None for one in every]
        assert {name for name, one in zip(named, every, strict=True) if one.worse} == set(worse)


def test_a_slice_on_few_contexts_is_not_judged():
    rows = [row for row in make_rows(10, LEAST_CONTEXTS) if row.decision_id == "spam"]
    for held, is_judged in ((rows, True), (rows[1:], False)):
        (one,) = slices_of(held, [spoil(row) for row in held]).by_decision
        assert (one.p_value is not None) is is_judged
        assert one.worse is is_judged


def test_at_most_a_hundred_of_each_kind_are_listed_and_the_worse_first():
    rows = make_rows(12, 130, soft=False, decisions={"spam": ("binary", ("yes", "no"))})
    before = [replace(row, decision_id=f"d{n // 10:02d}") for n, row in enumerate(rows * 10)]
    before = [
        replace(row, context_sha256=f"c{n}", probabilities=(0.5, 0.5))
        for n, row in enumerate(before)
    ]
    after = [spoil(row) if row.decision_id == "d07" else row for row in sharpen(before, 0.9)]
    gate = judged(before, after).gate
    assert (len(gate.by_decision), len(gate.by_outcome)) == (100, 100)
    assert gate.unlisted == 130 + len({(r.decision_id, label_of(r)) for r in before}) - 200
    assert (gate.by_decision[0].decision_id, gate.by_decision[0].worse) == ("d07", True)
    assert "decision_worse" in gate.reasons


@given(st.lists(st.none() | st.floats(0.0, 1.0), max_size=20))
@settings(deadline=None)
def test_holm_as_the_paper_reads(p_values):
    """Rejecting one by one, the smallest first, until one is not below its share."""
    found = holm(p_values)
    given_ = sorted(value for value in p_values if value is not None)
    for level in (0.01, 0.05, 0.5):
        n_rejected = 0
        while n_rejected < len(given_) and given_[n_rejected] * (len(given_) - n_rejected) < level:
            n_rejected += 1
        limit = sorted(value for value in found if value is not None)
        assert sum(value < level for value in limit) == n_rejected
    assert [value is None for value in found] == [value is None for value in p_values]


def test_the_text_baseline_is_compared_on_every_decision():
    before = make_rows(13, 60)
    after = sharpen(before, 0.5)
    gate = judged(before, after, baseline=records_from_rows(sharpen(before, 0.3))).gate
    assert gate.passed
    assert gate.baseline.decisions == 180
    assert gate.baseline.loss.after == gate.groups["new"].loss.after
    better = judged(before, after, baseline=records_from_rows(sharpen(before, 0.8)))
    assert better.gate.reasons == ["below_text_baseline"]
    assert "text baseline" in better.sentences[0]
    # Alike within noise is not worse.
    twin = [
        replace(row, probabilities=other.probabilities) if n % 2 else row
        for n, (row, other) in enumerate(zip(after, sharpen(before, 0.51), strict=True))
    ]
    nearly = judged(before, twin, baseline=records_from_rows(after)).gate
    assert nearly.passed


def test_rewards_are_compared_with_the_baseline_too():
    before = make_rows(14, 60, supervision="rewards")
    baseline = records_from_rows(sharpen(before, 0.8))
    # It earns more than its predecessor and breaks nothing: as good as another may be, it may serve.
    better = judged(before, sharpen(before, 0.3), baseline=baseline).gate
    assert better.passed
    assert better.groups["new"].flips.broken == 0
    assert better.baseline.scaled_reward.low < better.baseline.scaled_reward.high < 0
    # With one decision broken for it, the baseline counts.
    after = sharpen(before, 0.3)
    place = next(n for n, row in enumerate(after) if is_best(row) and is_best(before[n]))
    worst = after[place].rewards.index(min(after[place].rewards))
    certain = tuple(float(n == worst) for n in range(len(after[place].rewards)))
    after[place] = replace(after[place], probabilities=certain)
    verdict = judged(before, after, baseline=baseline)
    assert verdict.gate.groups["new"].flips.broken == 1
    assert verdict.gate.reasons == ["below_text_baseline"]


def is_best(row):
    """Whether the top outcome earns the most, and not every one does."""
    top = row.probabilities.index(max(row.probabilities))
    return row.rewards[top] == max(row.rewards) > min(row.rewards)


def test_a_baseline_without_some_decision_never_passes():
    before = make_rows(15, 30)
    after = sharpen(before, 0.5)
    for baseline in (before[1:], [*before, replace(before[0], context_sha256="other")]):
        with pytest.raises(UnmeasurableError, match="text baseline"):
            judged(before, after, baseline=records_from_rows(baseline))


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=10)
def test_an_unchanged_slice_is_never_worse(seed):
    before = make_rows(seed, 40)
    found = slices_of(before, before)
    assert not any(one.worse for one in (*found.by_decision, *found.by_outcome))
    assert all(one.p_value in {None, 1.0} for one in (*found.by_decision, *found.by_outcome))
    assert np.isfinite([one.loss.high for one in found.by_outcome]).all()
