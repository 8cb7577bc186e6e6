from __future__ import annotations

import numpy as np
import pytest

from steelyard.prompt_tuning.label_issues import MAX_ISSUES, find_label_issues
from steelyard.prompt_tuning.proof import LEAST_CONTEXTS, noise_of, prove, shares_of

NAMES = ("a", "b")


def told(targets, sure, rng, spread=0.05):
    right = np.clip(sure + spread * rng.standard_normal(len(targets)), 0.01, 0.99)[:, None]
    return targets * right + (1 - targets) * (1 - right)


def make(n, original, tuned, seed=0):
    rng = np.random.default_rng(seed)
    targets = np.eye(2)[rng.integers(2, size=n)]
    return told(targets, original, rng), told(targets, tuned, rng), targets


def judge(original, tuned, targets, contexts=None):
    contexts = np.arange(len(targets)) if contexts is None else contexts
    return prove(original, tuned, targets, contexts, shares_of(targets), NAMES)


def test_a_gain_beyond_the_noise_is_proven():
    proof = judge(*make(200, 0.6, 0.8))
    assert (proof.verdict, proof.reasons) == ("improved", [])
    assert proof.test.gain > proof.noise_band > 0
    assert proof.test.gain_low < proof.test.gain < proof.test.gain_high
    assert proof.test.tuned_accuracy == 1.0
    assert proof.test.recall["a"].tuned == 1.0
    assert proof.test.recall["a"].rows + proof.test.recall["b"].rows == 200


@pytest.mark.parametrize(
    ("made", "verdict", "why"),
    [
        (make(200, 0.8, 0.7), "no_improvement", "no less"),
        (make(LEAST_CONTEXTS - 1, 0.6, 0.8), "inconclusive", "contexts prove nothing"),
        (make(200, 0.2, 0.4), "inconclusive", "shares of the labels"),
    ],
    ids=["worse", "few contexts", "still knows nothing"],
)
def test_an_unproven_gain_has_a_reason(made, verdict, why):
    proof = judge(*made)
    assert proof.verdict == verdict
    assert why in " ".join(proof.reasons)


def test_a_gain_within_the_noise_is_inconclusive():
    targets = np.eye(2)[np.arange(60) % 2]
    original = np.where(targets > 0, 0.8, 0.2)
    better = (np.arange(60) // 2 % 2 == 0)[:, None]
    tuned = np.abs(1 - targets - np.where(better, 0.86, 0.75))
    found = judge(original, tuned, targets)
    assert 0 < found.test.gain < found.noise_band
    assert found.verdict == "inconclusive"
    assert "within the noise" in found.reasons[0]


def test_rows_of_one_context_count_as_one():
    original, tuned, targets = make(40, 0.6, 0.65)
    alone = judge(original, tuned, targets)
    together = judge(original, tuned, targets, contexts=np.arange(40) // 4)
    assert together.test.contexts == 10
    assert together.verdict == "inconclusive"
    assert alone.verdict == "improved"


def test_chance_alone_is_seldom_called_an_improvement():
    improved = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        targets = np.eye(2)[rng.integers(2, size=60)]
        # Both know the labels alike: what one gains on a row is chance.
        original, tuned = told(targets, 0.75, rng, 0.15), told(targets, 0.75, rng, 0.15)
        improved += judge(original, tuned, targets).verdict == "improved"
    # 5 % of 200 are 10; 18 or more come by chance once in a hundred.
    assert improved < 18


def test_noise_shrinks_with_rows():
    rng = np.random.default_rng(0)
    losses = rng.exponential(size=1600)
    few, many = (noise_of(losses[:n], np.arange(n)) for n in (100, 1600))
    assert 0 < many < few / 2


def test_labels_that_contradict_the_answers_are_doubted_the_worst_first():
    targets = np.eye(2)[[0, 0, 0, 1, 1, 1, 0, 1]]
    probabilities = np.array(
        [[0.9, 0.1]] * 3 + [[0.1, 0.9]] * 3 + [[0.1, 0.9], [0.98, 0.02]], dtype=float
    )
    issues = find_label_issues(probabilities, targets, list(range(10, 18)), NAMES)
    assert [issue.row for issue in issues] == ["r17", "r16"]
    assert "labelled b (probability 0.02) and reads like a (0.98)" in issues[0].reason


def test_a_model_that_is_never_sure_doubts_nothing():
    targets = np.eye(2)[np.arange(50) % 2]
    assert find_label_issues(np.full((50, 2), 0.5), targets, range(50), NAMES) == []


def test_doubted_labels_have_a_bound():
    targets = np.eye(2)[np.arange(3000) % 2]
    probabilities = np.where(np.arange(3000)[:, None] % 7 == 0, 1 - targets, targets) * 0.9 + 0.05
    assert len(find_label_issues(probabilities, targets, range(3000), NAMES)) == MAX_ISSUES
