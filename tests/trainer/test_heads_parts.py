"""The parts of which heads are fitted: folds, regressions, blends, boosters, calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from steelyard.families.wire import MAX_SEED
from steelyard.scoring.head_specs import calibrate, log_softmax, pair_features
from steelyard.scoring.ngrams import fit_table, hash_words
from steelyard.trainer.blending import blend, correct, fit_booster, fit_weights
from steelyard.trainer.calibrating import (
    choose_calibration,
    cross_fitted,
    fit_beta,
    fit_isotonic,
    fit_temperature,
    is_better,
    row_losses,
)
from steelyard.trainer.candidates import ngram_candidate
from steelyard.trainer.crossfit import assign_folds, number_of_folds
from steelyard.trainer.data import decision_data, ngram_matrix
from steelyard.trainer.features import Features
from steelyard.trainer.linear import fit_linear
from steelyard.trainer.markers import fit_markers
from steelyard.trainer.static import StaticWords
from support.families.tuning_rows import TEAM, WORDS, make_row, permuted, team_rows


def draw_task(n, n_outcomes=3, width=5, seed=0, *, sharpness=1.5):
    """Logits of a known model, and labels drawn from it."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, width)).astype(np.float32)
    truth = sharpness * rng.normal(size=(width, n_outcomes))
    logs = log_softmax(features @ truth)
    labels = [rng.choice(n_outcomes, p=np.exp(row)) for row in logs]
    return features, logs, np.eye(n_outcomes, dtype=np.float32)[labels]


def mean_loss(logits, targets):
    """The mean cross-entropy of targets against the softmax of logits, in nats."""
    return float(-(log_softmax(logits) * targets).sum(axis=1).mean())


# Folds


def test_folds_hold_a_context_together_and_labels_alike():
    contexts = [f"{number:03d}" for number in range(120)] * 2
    labels = np.tile(np.arange(120) % 3, 2)
    folds = assign_folds(contexts, labels, 1)
    assert np.array_equal(folds[:120], folds[120:])
    counts = np.array([[((folds == f) & (labels == k)).sum() for k in range(3)] for f in range(8)])
    assert np.ptp(counts) <= 2
    order = np.random.default_rng(0).permutation(240)
    moved = assign_folds([contexts[i] for i in order], labels[order], 1)
    assert np.array_equal(moved, folds[order])
    assert not np.array_equal(assign_folds(contexts, labels, 2), folds)


def test_the_number_of_folds_falls_with_the_rows():
    assert [number_of_folds(n) for n in (2, 5, 400, 401, 5_000)] == [2, 5, 8, 5, 4]
    with pytest.raises(ValueError, match="cannot be folded"):
        number_of_folds(1)


# Regressions


def test_a_regression_finds_the_model_that_drew_the_labels():
    features, logs, targets = draw_task(4_000)
    fit = fit_linear(features, targets, 1.0)
    assert mean_loss(fit.logits(features), targets) < mean_loss(logs, targets) + 0.002
    few = fit_linear(features, targets, 1e6)
    assert np.abs(few.weights).max() < 0.01


def test_sparse_and_dense_features_give_the_same_fit():
    features, _, targets = draw_task(300)
    dense = fit_linear(features, targets, 1.0)
    sparse = fit_linear(csr_array(features), targets, 1.0)
    np.testing.assert_allclose(dense.weights, sparse.weights, atol=1e-3)


def test_soft_targets_are_rows_that_were_counted_by_halves():
    features, _, targets = draw_task(200)
    soft = np.full_like(targets, 1 / 3)
    mixed = fit_linear(features, (targets + soft) / 2, 1.0, most_steps=300)
    doubled = fit_linear(
        np.vstack([features, features]),
        np.vstack([targets, soft]),
        2.0,
        most_steps=300,
        bias_penalty=0.1,
    )
    np.testing.assert_allclose(mixed.weights, doubled.weights, atol=0.01)


def test_an_offset_that_knows_is_leant_on():
    features, logs, targets = draw_task(1_000)
    noise = np.zeros((1_000, 0), np.float32)
    fit = fit_linear(
        noise, targets, 1.0, offsets=[(logs / 4).astype(np.float32)], first_scales=[1.0]
    )
    assert fit.scales[0] == pytest.approx(4, rel=0.15)
    again = fit_linear(features, targets, 1.0, start=fit_linear(features, targets, 1.0))
    assert mean_loss(again.logits(features), targets) < 1


def test_corrections_by_markers_vanish_or_teach():
    rng = np.random.default_rng(0)
    markers = rng.normal(size=(600, 3, 6)).astype(np.float32)
    truth = 2 * markers[:, :, 0]
    labels = [rng.choice(3, p=np.exp(row)) for row in log_softmax(truth)]
    targets = np.eye(3, dtype=np.float32)[labels]
    base = rng.normal(size=(600, 3)).astype(np.float32)
    taught = fit_markers(markers, base, targets, 1.0)
    held = fit_markers(markers, base, targets, 1e6)
    assert mean_loss(taught.logits(markers, base), targets) < mean_loss(truth, targets) + 0.05
    assert np.abs(held.shared + held.own).max() < 1e-3
    assert taught.sharpness < 0.3
    started = fit_markers(markers, base, targets, 1.0, start=taught)
    np.testing.assert_allclose(
        started.logits(markers, base), taught.logits(markers, base), atol=0.05
    )


def static_words():
    """Static vectors: those of a team's words, and of one that no row has, are near each other."""
    rng = np.random.default_rng(0)
    known = {**WORDS, "billing": [*WORDS["billing"], "reimbursement"]}
    words = [word for team in known.values() for word in team]
    vectors = np.repeat(rng.normal(size=(3, 6)), list(map(len, known.values())), axis=0)
    return StaticWords(hash_words(words), (vectors + 0.1 * rng.normal(size=(13, 6))).astype("f4"))


@pytest.mark.parametrize("static", [None, static_words()], ids=["n-grams", "static too"])
def test_n_grams_in_the_span_of_the_rows_fit_as_they_are(monkeypatch, static):
    from steelyard.trainer import candidates

    rows = team_rows(80)
    data = decision_data(rows, range(80), Features(0, {}, {}, static=static), has_rewards=False)
    found = []
    for bound in (2_500, 0):
        monkeypatch.setattr(candidates, "MOST_SPANNING_ROWS", bound)
        fitted = ngram_candidate(data).fit(np.arange(60), 0.1, None)
        member, tensors = fitted.export()
        assert member.table == data.table.name
        served = data.ngrams @ tensors["ngrams"].astype(np.float32) + tensors["bias"]
        np.testing.assert_allclose(served, fitted.logits(np.arange(80)), atol=0.02)
        found.append(log_softmax(served))
    np.testing.assert_allclose(found[0], found[1], atol=0.05)


def test_static_vectors_teach_words_that_no_row_has():
    rows, text = team_rows(80, noise=0.0), "A reimbursement, please."
    p_billing = []
    for static in (None, static_words()):
        features = Features(0, {}, {}, static=static)
        data = decision_data(rows, range(80), features, has_rewards=False)
        _, tensors = ngram_candidate(data).fit(np.arange(80), 0.1, None).export()
        served = ngram_matrix([text], data.table) @ tensors["ngrams"] + tensors["bias"]
        p_billing.append(float(np.exp(log_softmax(served))[0, 0]))
    without, beside = p_billing
    assert beside > without + 0.2


def test_columns_that_texts_have_stay_as_they_are_beside_static_words():
    table = fit_table([row.context for row in team_rows(80)], 500)
    extended, vectors = static_words().extend(table, 80, most=5)
    at = np.searchsorted(extended.columns, table.columns)
    assert np.array_equal(extended.columns[at], table.columns)
    assert np.array_equal(extended.rarity[at], table.rarity)
    # Billing's words alone, of which the last is in no text.
    assert vectors.any(axis=1).sum() == 5
    assert len(extended) == len(table) + 1
    assert extended.rarity.max() == np.float32(np.log(81) + 1)


# Rows


def test_rows_are_collected_in_canonical_order():
    rows = [permuted(row, [1, 2, 0]) for row in team_rows(9)]
    data = decision_data(rows, range(9), Features(0, {}, {}), has_rewards=False)
    assert data.decision.outcomes == ("billing", "sales", "support")
    by_context = {row.context: row for row in team_rows(9)}
    for context, target in zip(data.contexts, data.targets, strict=True):
        told = dict(zip(TEAM.outcomes, by_context[context].labels, strict=True))
        assert target.tolist() == [told[name] for name in data.decision.outcomes]


def test_rewards_are_scaled_and_ties_shared():
    rows = [make_row("a", TEAM, [1, 3, 3]), make_row("b", TEAM, [0, -4, 4])]
    rows.append(make_row("c", TEAM, [2, 2, 2]))
    data = decision_data(rows, range(3), Features(0, {}, {}), has_rewards=True)
    found = {
        context: (target.tolist(), reward.tolist())
        for context, target, reward in zip(data.contexts, data.targets, data.rewards, strict=True)
    }
    # Outcomes as billing, sales, support.
    assert found == {"a": ([0.5, 0.5, 0], [1, 1, 0]), "b": ([0, 1, 0], [0, 1, 0.5])}


@pytest.mark.parametrize("unit", [1e-10, 1e-300, 4e307])
def test_the_unit_of_rewards_does_not_matter(unit):
    rewards = {"a": [1, 3, 3], "b": [0, -4, 4], "c": [2, 2, 2]}
    rows = [make_row(name, TEAM, [unit * one for one in row]) for name, row in rewards.items()]
    data = decision_data(rows, range(3), Features(0, {}, {}), has_rewards=True)
    assert set(data.contexts) == {"a", "b"}
    a, b = data.contexts.index("a"), data.contexts.index("b")
    np.testing.assert_allclose(data.targets[[a, b]], [[0.5, 0.5, 0], [0, 1, 0]])
    np.testing.assert_allclose(data.rewards[[a, b]], [[1, 1, 0], [0, 1, 0.5]], atol=1e-6)


def test_rewards_that_differ_by_rounding_alone_are_equal():
    rows = [make_row("a", TEAM, [0.1 + 0.2, 0.3, 0.3]), make_row("b", TEAM, [1, 2, 3])]
    data = decision_data(rows, range(2), Features(0, {}, {}), has_rewards=True)
    assert data.contexts == ["b"]


# Blends


def test_weights_go_to_the_better_member():
    _, logs, targets = draw_task(2_000)
    noise = log_softmax(np.random.default_rng(1).normal(size=logs.shape))
    known, unknown = fit_weights([logs, noise], targets, None)
    assert known == pytest.approx(1, abs=0.15)
    assert 0 <= unknown < 0.05
    blended = blend([logs, noise], [known, unknown])
    np.testing.assert_allclose(np.exp(blended).sum(1), 1)
    assert row_losses(blended, targets).mean() < row_losses(logs, targets).mean() + 0.01


def test_weights_stay_equal_where_there_are_no_rows_to_tell():
    _, logs, _ = draw_task(2)
    told = np.exp(logs).astype(np.float32)
    assert fit_weights([logs, logs], told, None) == pytest.approx([0.5, 0.5], abs=0.05)


def test_a_booster_learns_from_errors_of_a_blend():
    features, logs, targets = draw_task(1_500)
    # A blend that is right about half of the contexts, which one of its members tells apart.
    is_odd = features[:, 0] > 0
    wrong = np.where(is_odd[:, None], logs[:, [1, 2, 0]], logs)
    lengths = np.where(is_odd, 1_000.0, 1.0)
    inputs = pair_features([wrong, logs], wrong, None, np.zeros(3), lengths)
    booster = fit_booster(inputs[:1_000], wrong[:1_000], targets[:1_000], None, 0)
    corrected = correct(booster, inputs[1_000:], wrong[1_000:])
    assert is_better(row_losses(corrected, targets[1_000:]), row_losses(wrong, targets)[1_000:])
    assert booster == fit_booster(inputs[:1_000], wrong[:1_000], targets[:1_000], None, 0)


@pytest.mark.parametrize("seed", [2**31, 2**32, MAX_SEED])
def test_a_booster_takes_every_seed(seed):
    _, logs, targets = draw_task(60)
    inputs = pair_features([logs, logs], logs, None, np.zeros(3), np.ones(60))
    booster = fit_booster(inputs, logs, targets, None, seed)
    assert booster == fit_booster(inputs, logs, targets, None, seed)


# Calibration


@pytest.mark.parametrize("fit", [fit_temperature, fit_beta, fit_isotonic])
def test_calibration_undoes_a_wrong_temperature(fit):
    _, logs, targets = draw_task(4_000)
    sharpened = log_softmax(3 * logs)
    step = fit(sharpened, targets)
    loss = row_losses(calibrate(sharpened, [step]), targets).mean()
    assert loss < row_losses(logs, targets).mean() + 0.01
    assert step.temperature == pytest.approx(3, rel=0.1)


def test_a_temperature_is_held_near_one_where_rows_are_few():
    logs = log_softmax(np.array([[4.0, 0.0]] * 3))
    sure = fit_temperature(logs, np.eye(2, dtype=np.float32)[[0, 0, 0]])
    assert 0.5 < sure.temperature < 1


def test_a_curve_is_taken_only_where_it_helps():
    _, logs, targets = draw_task(3_000)
    folds = np.arange(3_000) % 5
    assert choose_calibration(logs, targets, folds).calibration.curve == "none"
    # Overconfident at the top alone: no temperature mends that.
    p = np.exp(logs)
    bent = np.log(np.where(p > 0.6, 0.999, p) + 1e-4)
    chosen = choose_calibration(log_softmax(bent), targets, folds)
    assert chosen.calibration.curve in {"beta", "isotonic"}
    plain = cross_fitted(fit_temperature, log_softmax(bent), targets, folds)
    assert is_better(chosen.losses, plain)


def test_better_means_beyond_noise():
    rng = np.random.default_rng(0)
    losses = rng.normal(1, 1, 400)
    assert is_better(losses - 0.2, losses)
    assert not is_better(losses, losses)
    assert not is_better(losses + rng.normal(0, 1, 400) + 0.01, losses)
