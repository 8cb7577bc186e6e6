"""The gate: every rule at its edge, and that nothing unsound ever passes."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.evaluations.gate_wire import Gate, unchanged_of
from steelyard.evaluations.measures.comparison import compare_evaluations
from steelyard.evaluations.measures.gate import judge
from steelyard.evaluations.measures.gate_rules import REASONS
from steelyard.evaluations.measures.records import UnmeasurableError
from support.families.gates import contexts, judged
from support.models.scored_records import (
    QUICK,
    ScoredRecord,
    make_rows,
    records_from_rows,
    rescore,
    row_measures,
    sharpen,
)

SPAM = {"spam": ("binary", ("yes", "no"))}


def answers(p_right, n, *, start=0):
    """Return n binary rows on contexts of their own, the right outcome "yes" at ``p_right``."""
    return [
        ScoredRecord(
            f"c{start + index:04d}", "d", "binary", ("yes", "no"), (p_right, 1 - p_right), (1, 0)
        )
        for index in range(n)
    ]


def test_a_better_model_passes_with_all_the_contract_names():
    before = make_rows(1, 40)
    new = {f"sha{index:05d}" for index in range(15)}
    verdict = judged(before, sharpen(before, 0.9), new)
    wire = msgspec.to_builtins(verdict.gate)
    assert verdict.sentences == ()
    assert (wire["passed"], wire["against"], wire["reasons"]) == (True, "parent", [])
    assert wire["groups"].keys() == {"new", "earlier"}
    new_group = wire["groups"]["new"]
    assert new_group.keys() == {"decisions", "contexts", "loss", "flips", "accuracy", "margin"}
    assert "margin" not in wire["groups"]["earlier"]
    assert (new_group["decisions"], new_group["contexts"]) == (45, 15)
    assert new_group["loss"].keys() == {"before", "after", "change", "low", "high"}
    assert new_group["flips"].keys() == {"fixed", "broken", "same_right", "same_wrong"}
    assert new_group["accuracy"].keys() == {"before", "after"}
    assert wire["ece"].keys() == {"before", "after"}
    assert wire["deltas"] == {
        "new": new_group["loss"]["change"],
        "earlier": wire["groups"]["earlier"]["loss"]["change"],
        "ece": pytest.approx(wire["ece"]["after"] - wire["ece"]["before"]),
    }
    assert msgspec.json.decode(msgspec.json.encode(verdict.gate), type=Gate) == verdict.gate


def test_its_figures_are_those_of_the_comparison():
    before = make_rows(2, 30)
    after = rescore(before, 3)
    group = judged(before, after).gate.groups["new"]
    overall = compare_evaluations(
        records_from_rows(before), records_from_rows(after), bootstrap=QUICK
    ).overall
    for name in ("before", "after", "change"):
        assert getattr(group.loss, name) == getattr(overall.loss, name)
    # Its percentiles lie within what allows for an unseen context.
    assert overall.loss.low < group.loss.low < group.loss.high < overall.loss.high
    assert group.flips == overall.flips


def test_a_first_model_has_new_rows_alone():
    before = make_rows(3, 20)
    gate = judged(before, sharpen(before, 0.9), against="base").gate
    assert (gate.passed, gate.against, list(gate.groups)) == (True, "base", ["new"])
    assert "earlier" not in msgspec.to_builtins(gate.deltas)


@pytest.mark.parametrize(("n", "reasons"), [(19, ["too_few_evaluation_decisions"]), (20, [])])
def test_rule_1_too_little_to_judge(n, reasons):
    verdict = judged(answers(0.6, n), answers(0.7, n), against="base")
    assert verdict.gate.reasons == reasons
    assert verdict.gate.passed is (not reasons)
    if reasons:
        assert "19" in verdict.sentences[0]
    assert judged(answers(0.6, n), answers(0.7, n), needed=n).gate.passed


def test_rule_1_without_any_new_row():
    before = answers(0.6, 30)
    gate = judged(before, answers(0.9, 30), new=set()).gate
    assert gate.reasons == ["too_few_evaluation_decisions"]
    assert list(gate.groups) == ["earlier"]


def test_rule_2_new_rows_worse():
    verdict = judged(answers(0.8, 25), answers(0.7, 25))
    assert verdict.gate.reasons == ["new_rows_worse", "no_gain_on_new_rows", "decision_worse"]
    assert all("0.2231" in sentence for sentence in verdict.sentences)
    assert "+0.1335" in verdict.sentences[0]


@pytest.mark.parametrize(("judged_on", "reasons"), [("new", ["no_gain_on_new_rows"]), ("all", [])])
def test_training_that_changed_nothing_is_said_so(judged_on, reasons):
    before = answers(0.8, 25)
    verdict = judged(
        before, answers(0.8 + 1e-7, 25) if judged_on == "all" else before, judged_on=judged_on
    )
    assert verdict.gate.reasons == reasons
    assert "training changed nothing" in unchanged_of(verdict.gate)
    assert all("training changed nothing" in sentence for sentence in verdict.sentences)
    assert unchanged_of(judged(before, answers(0.81, 25)).gate) is None


def test_rule_2_no_gain():
    mixed = answers(0.5, 13) + answers(0.88, 12, start=13)
    unsure = judged(answers(0.72, 25), mixed)
    compared = unsure.gate.groups["new"].loss
    assert compared.low < 0 < compared.change
    assert unsure.gate.reasons[0] == "no_gain_on_new_rows"


def test_rule_2_a_gain_that_may_be_chance_does_not_pass():
    before = answers(0.6, 25)
    after = answers(0.7, 20) + answers(0.45, 5, start=20)
    verdict = judged(before, after)
    compared = verdict.gate.groups["new"].loss
    assert compared.change < 0 < compared.high
    assert verdict.gate.reasons == ["inconclusive_on_new_rows"]
    assert "add rows" in verdict.sentences[0]


@pytest.mark.parametrize("judged_on", ["new", "all"])
@pytest.mark.parametrize(("before", "after"), [(0.97, 0.99), (0.93, 0.9999), (0.4, 0.45)])
def test_rule_2_a_sure_gain_that_breaks_nothing_passes(before, after, judged_on):
    old = answers(before, 60) + answers(before - 0.02, 60, start=60)
    verdict = judged(old, answers(after, 120), judged_on=judged_on)
    [group] = verdict.gate.groups.values()
    assert (group.loss.high < 0, group.flips.broken, group.margin) == (True, 0, 0.0)
    assert verdict.gate.reasons == []


def test_rule_2_allows_for_one_mistake_more_than_was_seen():
    """Where a decision was broken, a gain must be larger than one mistake more would undo."""
    before = answers(0.97, 39) + answers(0.502, 1, start=39)
    verdict = judged(before, answers(0.99, 39) + answers(0.499, 1, start=39))
    group = verdict.gate.groups["new"]
    assert group.loss.high < 0
    # On the other outcome the loss would rise from -log 0.03 to -log 0.01; there are 40 contexts.
    assert group.margin == pytest.approx(math.log(3) / 40, rel=0.05)
    assert verdict.gate.reasons == ["inconclusive_on_new_rows"]
    assert "1 broken" in verdict.sentences[0]
    # Less sure of itself: a mistake more would speak for it, and is not counted on.
    surely = answers(0.99, 19) + answers(0.51, 1, start=19) + answers(0.01, 8, start=20)
    after = answers(0.95, 19) + answers(0.49, 1, start=19) + answers(0.2, 8, start=20)
    gate = judged(surely, after).gate
    compared = gate.groups["new"].loss
    # 28 contexts: t of 27 degrees is 2.0518.
    few = 2 * (compared.high - compared.change) * (2.0518 / 1.9600 * math.sqrt(28 / 27) - 1)
    assert gate.groups["new"].margin == pytest.approx(few, abs=1e-4)
    assert gate.passed


def test_the_margin_is_the_mean_change_had_the_best_changed_places_and_for_few_contexts():
    """As written out: every decision with its best outcome swapped for each other one in turn."""
    for supervision, key in (("targets", "targets"), ("rewards", "rewards")):
        before = make_rows(11, 20, supervision=supervision)
        after = rescore(before, 11)
        name, sign = ("loss", 1) if supervision == "targets" else ("scaled_reward", -1)
        changes = []
        for old, new in zip(before, after, strict=True):
            labels = getattr(old, key)
            best = labels.index(max(labels))
            weights = [
                (a + b) / 2 for a, b in zip(old.probabilities, new.probabilities, strict=True)
            ]
            weights[best] = 0.0
            if name not in row_measures(old):
                continue
            change = 0.0
            for other, weight in enumerate(weights):
                swapped = list(labels)
                swapped[best], swapped[other] = labels[other], labels[best]
                pair = [row_measures(replace(row, **{key: tuple(swapped)})) for row in (old, new)]
                change += sign * weight / sum(weights) * (pair[1][name] - pair[0][name])
            changes.append(change)
        group = judged(before, after).gate.groups["new"]
        assert group.flips.broken
        compared = getattr(group, name)
        # And 20 contexts: t of 19 degrees, 2.0930, where the normal has 1.9600.
        end = compared.high if sign > 0 else compared.low
        few = 2 * abs(end - compared.change) * (2.0930 / 1.9600 * math.sqrt(20 / 19) - 1)
        unseen = max(0.0, sum(changes) / len(changes)) / 20
        assert group.margin == pytest.approx(unseen + few, abs=1e-4)


@pytest.mark.parametrize(("n_contexts", "reasons"), [(9, ["inconclusive_on_new_rows"]), (10, [])])
def test_rule_2_wants_contexts_and_not_decisions_alone(n_contexts, reasons):
    def rows(p_right):
        return [
            replace(row, context_sha256=f"c{index % n_contexts}", decision_id=f"d{index}")
            for index, row in enumerate(answers(p_right, 40))
        ]

    verdict = judged(rows(0.6), rows(0.8))
    assert verdict.gate.reasons == reasons
    if reasons:
        assert "9 contexts and 10 are needed" in verdict.sentences[0]


def test_rule_3_earlier_rows_worse_surely():
    before = answers(0.6, 25) + answers(0.8, 30, start=25)
    new = contexts(before[:25])
    after = answers(0.9, 25) + answers(0.79, 30, start=25)
    verdict = judged(before, after, new)
    assert verdict.gate.groups["earlier"].loss.change < 0.05
    assert verdict.gate.reasons == ["earlier_rows_worse"]


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        # All right, and as sure as anybody needs: nobody would notice.
        (answers(1 - 1e-6, 30, start=25), answers(0.999, 30, start=25), []),
        # The same fall of the loss, and one decision of two hundred wrong for it.
        (
            answers(0.502, 200, start=25),
            answers(0.499, 1, start=25) + answers(0.5001, 199, start=26),
            ["earlier_rows_worse"],
        ),
    ],
)
def test_rule_3_an_unnoticeable_fall_is_none(before, after, reasons):
    old, new = answers(0.6, 25), answers(0.9, 25)
    verdict = judged(old + before, new + after, contexts(old))
    earlier = verdict.gate.groups["earlier"].loss
    assert earlier.low > 0
    assert earlier.change < 0.01
    assert verdict.gate.reasons == reasons


def test_rule_3_earlier_rows_worse_by_more_than_allowed():
    """The interval holds 0, and yet the change is too large to let pass."""
    before = answers(0.6, 25) + answers(0.7, 30, start=25)
    new = contexts(before[:25])
    after = answers(0.9, 25) + answers(0.9, 20, start=25) + answers(0.3, 10, start=45)
    verdict = judged(before, after, new)
    earlier = verdict.gate.groups["earlier"].loss
    assert earlier.low < 0
    assert earlier.change > 0.05
    assert "earlier_rows_worse" in verdict.gate.reasons
    # A little worse, and not surely so, is let pass.
    after = answers(0.9, 25) + answers(0.75, 26, start=25) + answers(0.4, 4, start=51)
    verdict = judged(before, after, new)
    earlier = verdict.gate.groups["earlier"].loss
    assert earlier.low < 0
    assert 0 < earlier.change < 0.05
    assert verdict.gate.passed


@pytest.mark.parametrize(
    ("promised", "reasons"),
    [(0.8, ["calibration_worse"]), (0.84, ["calibration_worse"]), (0.86, [])],
)
def test_rule_4_calibration_worse(promised, reasons):
    """More right and less loss, but 0.9 comes true where another share was promised."""
    before = answers(0.55, 55) + answers(0.45, 45, start=55)
    after = answers(promised, 90) + answers(1 - promised, 10, start=90)
    verdict = judged(before, after)
    assert verdict.gate.groups["new"].loss.high < 0
    assert verdict.gate.ece.before == pytest.approx(0.0)
    assert verdict.gate.ece.after == pytest.approx(0.9 - promised)
    assert verdict.gate.reasons == reasons


def test_the_calibration_error_is_null_under_fifty_decisions():
    gate = judged(answers(0.6, 49), answers(0.7, 49)).gate
    assert msgspec.to_builtins(gate.ece) == {"before": None, "after": None}
    assert gate.deltas.ece is None
    assert judged(answers(0.6, 50), answers(0.7, 50)).gate.ece.before == pytest.approx(0.4)


def test_rewards_are_judged_by_scaled_reward_with_the_signs_turned():
    before = make_rows(5, 40, supervision="rewards")
    new = {f"sha{index:05d}" for index in range(20)}
    better = judged(before, sharpen(before, 0.5), new)
    wire = msgspec.to_builtins(better.gate)
    assert wire["passed"]
    group = wire["groups"]["new"]
    names = {"decisions", "contexts", "scaled_reward", "flips", "picked_best", "margin"}
    assert group.keys() == names
    assert group["scaled_reward"]["change"] > 0
    compared = [row for row in before if "scaled_reward" in row_measures(row)]
    assert group["decisions"] == sum(row.context_sha256 in new for row in compared)
    assert wire["ece"] == {"before": None, "after": None}
    worse = judged(sharpen(before, 0.5), before, new)
    assert worse.gate.reasons[:3] == ["new_rows_worse", "no_gain_on_new_rows", "earlier_rows_worse"]
    assert set(worse.gate.reasons[3:]) == {"decision_worse", "outcome_worse"}
    assert "scaled reward" in worse.sentences[0]


def test_rewards_that_are_all_equal_are_too_little_to_judge():
    rows = [replace(row, targets=None, rewards=(1.0, 1.0)) for row in answers(0.6, 30)]
    gate = judged(rows, sharpen(rows, 0.5)).gate
    assert (gate.reasons, gate.groups) == (["too_few_evaluation_decisions"], {})


@given(st.integers(0, 2**32 - 1), st.data())
@settings(deadline=None, max_examples=30)
def test_a_missing_or_unpaired_decision_never_passes(seed, data):
    before = make_rows(seed, 20)
    after = sharpen(before, 0.8)
    assert judged(before, after).gate.passed
    fewer = list(after)
    del fewer[data.draw(st.integers(0, len(after) - 1))]
    for pair in ((before, fewer), (fewer, before)):
        with pytest.raises(UnmeasurableError, match="counterpart"):
            judged(*pair, new=contexts(before))


@given(st.integers(0, 2**32 - 1), st.sampled_from([math.nan, math.inf, None]), st.data())
@settings(deadline=None, max_examples=20)
def test_a_number_that_is_none_never_passes(seed, bad, data):
    before = make_rows(seed, 20)
    after = sharpen(before, 0.8)
    row = data.draw(st.integers(0, len(after) - 1))
    after[row] = replace(after[row], probabilities=(bad, *after[row].probabilities[1:]))
    with pytest.raises(UnmeasurableError):
        judged(before, after)


def test_a_flag_is_given_for_each_decision():
    before = make_rows(5, 12)
    sides = records_from_rows(before), records_from_rows(before)
    with pytest.raises(ValueError, match="flags"):
        judge(*sides, against="parent", is_new=[True])
    with pytest.raises(ValueError, match="needed"):
        judged(before, before, needed=0)


@pytest.mark.parametrize(
    ("after", "n", "reasons"),
    [
        (0.8, 19, ["too_few_evaluation_decisions"]),
        (0.8, 20, []),
        (0.9, 20, []),
        (0.7, 20, ["earlier_rows_worse", "inconclusive_on_earlier_rows", "decision_worse"]),
    ],
)
def test_a_correction_is_judged_on_every_row_and_needs_no_gain(after, n, reasons):
    before = answers(0.8, n)
    verdict = judged(before, answers(after, n), new=set(), judged_on="all")
    assert verdict.gate.reasons == reasons
    assert (list(verdict.gate.groups), verdict.gate.judged_on) == (["earlier"], "all")
    assert len(verdict.gate.sentences) == len(reasons)
    # Decisions that came since are judged with the others.
    assert judged(before, answers(after, n), judged_on="all") == verdict


def test_a_correction_that_may_be_worse_does_not_pass():
    before = answers(0.8, 20)
    after = [*answers(0.86, 14), *answers(0.68, 6, start=14)]
    gate = judged(before, after, new=set(), judged_on="all").gate
    change = gate.groups["earlier"].loss
    assert change.change < 0 or change.low < 0.01
    assert gate.reasons == ["inconclusive_on_earlier_rows"]
    few = [replace(row, context_sha256=f"c{place % 9}") for place, row in enumerate(before)]
    assert judged(few, few, judged_on="all").gate.reasons == ["inconclusive_on_earlier_rows"]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["targets", "rewards"]))
@settings(deadline=None, max_examples=20)
def test_the_same_model_never_passes_and_order_changes_nothing(seed, supervision):
    before = make_rows(seed, 25, supervision=supervision)
    assert not judged(before, before).gate.passed
    new = {f"sha{index:05d}" for index in range(10)}
    after = rescore(before, seed)
    shuffle = random.Random(seed)
    one = judged(before, after, new)
    two = judged(shuffle.sample(before, len(before)), shuffle.sample(after, len(after)), new)
    assert one == two


@given(st.integers(0, 2**32 - 1), st.sampled_from(["targets", "rewards"]), st.floats(-0.5, 0.9))
@settings(deadline=None, max_examples=40)
def test_it_passes_exactly_when_no_rule_is_broken(seed, supervision, share):
    before = make_rows(seed, 25, supervision=supervision)
    after = sharpen(before, share) if share > 0 else rescore(before, seed)
    new = {f"sha{index:05d}" for index in range(12)}
    verdict = judged(before, after, new)
    gate = verdict.gate
    assert gate.passed is (gate.reasons == [])
    assert len(verdict.sentences) == len(gate.reasons)
    assert gate.reasons == [reason for reason in REASONS if reason in gate.reasons]
    sign, name = (1, "loss") if supervision == "targets" else (-1, "scaled_reward")
    worst = {}
    for key, group in gate.groups.items():
        change = getattr(group, name)
        ends = sorted((sign * change.low, sign * change.high))
        worst[key] = (ends[0], sign * change.change)
    expected = []
    if worst["new"][0] > 0:
        expected.append("new_rows_worse")
    new_group = gate.groups["new"]
    high = -new_group.scaled_reward.low if sign < 0 else new_group.loss.high
    if worst["new"][1] >= 0:
        expected.append("no_gain_on_new_rows")
    elif high + new_group.margin >= 0:
        expected.append("inconclusive_on_new_rows")
    if worst["earlier"][0] > 0 or worst["earlier"][1] > 0.05:
        expected.append("earlier_rows_worse")
    if any(one.worse for one in gate.by_decision):
        expected.append("decision_worse")
    if any(one.worse for one in gate.by_outcome):
        expected.append("outcome_worse")
    if gate.ece.before is not None and gate.ece.after > gate.ece.before + 0.05:
        expected.append("calibration_worse")
    assert gate.reasons == expected
