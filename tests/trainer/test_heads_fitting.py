from __future__ import annotations

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from steelyard.calibration.metrics import log_loss
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.scoring.hashing import HashingScorer
from steelyard.scoring.heads import NUMBERS, SPECS, Heads
from steelyard.scoring.tuned import TunedScorer
from steelyard.trainer import fitting
from steelyard.trainer.candidates import PARENT, parent_candidate
from steelyard.trainer.choosing import MOST_DEPTH, choose_head, is_too_deep
from steelyard.trainer.data import decision_data
from steelyard.trainer.features import compute_features
from steelyard.trainer.fitting import WORDS_ALONE, FitReport, fit_heads
from support.families.tuning_rows import (
    LEVEL,
    TEAM,
    WordScorer,
    make_row,
    permuted,
    reward_rows,
    team_rows,
)


def quiet(*_):
    pass


def fit(rows, folder, *, scorer=None, **options):
    scorer = scorer or WordScorer()
    for part in ("features", "heads"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    features = compute_features(rows, scorer, folder / "features", quiet)
    options = {"method": "sft", "seed": 3, "parent": None, "on_progress": quiet} | options
    report = fit_heads(rows, features, folder=folder / "heads", **options)
    return report, Heads.load(folder / "heads"), scorer


def answers(heads, scorer, rows):
    tuned = TunedScorer(heads, scorer)
    found = []
    for row in rows:
        [[scored]] = tuned.score([RenderedRequest(row.context, (row.decision,))])
        assert scored.is_calibrated
        found.append(np.exp(scored.logits.astype(float)))
    return np.clip(np.array(found), 0, 1)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return fit(team_rows(400), tmp_path_factory.mktemp("fitted"))


@pytest.mark.slow
def test_a_head_learns_from_words(fitted):
    report, heads, scorer = fitted
    rows = team_rows(200, seed=1, noise=0.0)
    shares = answers(heads, scorer, rows)
    targets = np.array([row.labels for row in rows])
    assert (shares.argmax(1) == targets.argmax(1)).mean() > 0.95
    [decision] = report.decisions
    assert decision.calibrated.loss < np.log(3) / 2
    assert decision.calibrated.low < decision.calibrated.loss < decision.calibrated.high


def test_its_loss_on_new_rows_is_as_promised(fitted):
    report, heads, scorer = fitted
    rows = team_rows(600, seed=2)
    loss = log_loss(answers(heads, scorer, rows), np.array([row.labels for row in rows]))
    promised = report.decisions[0].calibrated
    assert promised.low - 0.05 < loss < promised.high + 0.05


def test_the_report_tells_of_every_candidate(fitted):
    [decision] = fitted[0].decisions
    names = [one.name for one in decision.candidates]
    assert names[:5] == ["embedding", "landmarks", "ngrams", "base", "markers"]
    assert {"blend", "stacker"} <= set(names)
    assert decision.chosen in names
    assert decision.rows == decision.contexts == 400
    # Noise says nothing of the words: what reads only it is no better than the prior.
    losses = {one.name: one.loss for one in decision.candidates}
    assert losses["base"] > 1.0 > losses["ngrams"]
    text = str(fitted[0])
    assert "| ngrams |" in text


@pytest.mark.parametrize(("make", "method"), [(team_rows, "sft"), (reward_rows, "reward")])
def test_words_alone_are_fitted_beside_it_and_read_nothing_else(make, method, tmp_path):
    fit(make(200), tmp_path, method=method)
    heads = Heads.load(tmp_path / "heads" / WORDS_ALONE)
    assert all(head.reads_words_alone for head in heads)
    scorer = WordScorer()
    rows = [permuted(row, [2, 0, 1]) for row in make(50, seed=1)]
    right = answers(heads, scorer, rows).argmax(1) == [row.labels.argmax() for row in rows]
    assert right.mean() > 0.8
    assert (scorer.n_scored, scorer.n_embedded) == (0, 0)


def test_a_report_survives_json(fitted):
    report = fitted[0]
    assert msgspec.json.decode(msgspec.json.encode(report), type=FitReport) == report


def test_candidates_not_worth_their_cost_are_not_asked(fitted):
    head = fitted[1].find(TEAM)
    assert not head.needs_base


def test_the_order_of_rows_and_of_outcomes_does_not_matter(tmp_path):
    rows = team_rows(60)
    moved = [permuted(row, [2, 0, 1]) if at % 2 else row for at, row in enumerate(rows)][::-1]
    found = [fit(one, tmp_path / str(at))[1].find(TEAM) for at, one in enumerate((rows, moved))]
    assert found[0].spec.fingerprint == found[1].spec.fingerprint
    assert found[0].spec.outcomes == ["billing", "sales", "support"]
    shares = [answers(Heads([one]), WordScorer(), rows[:20]) for one in found]
    np.testing.assert_allclose(shares[0], shares[1], atol=2e-3)


def test_the_same_rows_give_the_same_bytes(tmp_path):
    rows = team_rows(80)
    for name in ("one", "two"):
        fit(rows, tmp_path / name)
    for file in (SPECS, NUMBERS):
        one, two = [(tmp_path / name / "heads" / file).read_bytes() for name in ("one", "two")]
        assert one == two


def test_it_goes_on_from_the_decisions_that_are_done(tmp_path, monkeypatch):
    rows = team_rows(60)
    rows += [make_row(row.context, LEVEL, row.labels) for row in rows]
    fit(rows, tmp_path / "whole")
    inner, done = fitting.fit_decision, []

    def killed(data, **options):
        if done:
            raise KeyboardInterrupt
        done.append(data.fingerprint)
        return inner(data, **options)

    monkeypatch.setattr(fitting, "fit_decision", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(rows, tmp_path / "cut")
    asked = []

    def counted(data, **options):
        asked.append(data.fingerprint)
        return inner(data, **options)

    monkeypatch.setattr(fitting, "fit_decision", counted)
    report, _, _ = fit(rows, tmp_path / "cut")
    assert len(asked) == 1
    assert asked != done
    assert len(report.decisions) == 2
    for file in (SPECS, NUMBERS):
        whole, cut = [(tmp_path / name / "heads" / file).read_bytes() for name in ("whole", "cut")]
        assert whole == cut


def test_progress_rises_to_its_end(tmp_path):
    told = []
    fit(team_rows(60), tmp_path, on_progress=lambda *one: told.append(one))
    done = [one[0] for one in told]
    assert done == sorted(done)
    assert told[-1][0] == told[-1][1]
    assert told[0][2] is None
    assert 0 < told[-1][2] < 2


@pytest.mark.parametrize("n_rows", [8, 15, 24])
def test_few_rows_give_a_modest_head(tmp_path, n_rows):
    rows = team_rows(n_rows, noise=0.0)
    report, heads, scorer = fit(rows, tmp_path)
    [decision] = report.decisions
    assert decision.chosen is not None
    new = team_rows(150, seed=5, noise=0.0)
    shares = answers(heads, scorer, new)
    loss = log_loss(shares, np.array([row.labels for row in new]))
    # Not much worse than knowing nothing, whatever was drawn.
    assert loss < np.log(3) + 0.25


@pytest.mark.parametrize("n_rows", [1, 7])
def test_fewer_rows_give_no_head(tmp_path, n_rows):
    report, heads, _ = fit(team_rows(n_rows), tmp_path)
    assert len(heads) == 0
    assert report.decisions[0].chosen is None
    assert "Too few rows" in str(report)


def test_one_outcome_alone_in_the_labels_is_no_certainty(tmp_path):
    rows = [make_row(f"text {i}", TEAM, [1.0, 0.0, 0.0]) for i in range(20)]
    _, heads, scorer = fit(rows, tmp_path)
    shares = answers(heads, scorer, [make_row("text 77", TEAM, [1.0, 0.0, 0.0])])
    assert 0.6 < shares[0, 0] < 0.9999
    assert (shares > 0).all()


@pytest.mark.slow
def test_soft_targets_give_soft_answers(tmp_path):
    report, heads, scorer = fit(team_rows(300, noise=0.0, soft=True), tmp_path)
    shares = answers(heads, scorer, team_rows(100, seed=4, noise=0.0))
    assert 0.7 < shares.max(1).mean() < 0.88
    entropy = -(0.8 * np.log(0.8) + 0.2 * np.log(0.1))
    assert entropy < report.decisions[0].calibrated.loss < entropy + 0.1


def test_contexts_that_occur_twice_are_not_on_both_sides_of_a_fold(tmp_path):
    rng = np.random.default_rng(0)
    # Labels are noise, told twice for each context: only a leak could learn them.
    rows = [
        make_row(row.context, TEAM, labels)
        for row in team_rows(80, noise=0.0)
        for labels in [np.eye(3)[rng.integers(3)]]
        for _ in range(2)
    ]
    report, _, _ = fit(rows, tmp_path)
    [decision] = report.decisions
    assert (decision.rows, decision.contexts) == (160, 80)
    assert min(one.loss for one in decision.candidates) > np.log(3) - 0.08


def test_a_scorer_without_vectors_still_gives_heads(tmp_path):
    report, heads, scorer = fit(team_rows(200), tmp_path, scorer=HashingScorer())
    assert [one.name for one in report.decisions[0].candidates][:2] == ["ngrams", "base"]
    assert not heads.find(TEAM).needs_embedding
    rows = team_rows(100, seed=1, noise=0.0)
    shares = answers(heads, scorer, rows)
    right = [row.labels.argmax() for row in rows]
    assert (shares.argmax(1) == right).mean() > 0.9


class TellingScorer(HashingScorer):
    """A base that knows the answer, so that asking it is worth the cost."""

    def score(self, requests):
        told = {row.context: row for row in team_rows(300, noise=0.0)}
        scored = super().score(requests)
        for request, [one] in zip(requests, scored, strict=True):
            labels = told[request.context].labels
            right = TEAM.outcomes[int(labels.argmax())]
            one.logits[:] = [3.0 * (name == right) for name in request.decisions[0].outcomes]
        return scored


def test_a_base_that_knows_is_asked(tmp_path):
    rows = team_rows(300, noise=0.0)[:40]
    report, heads, _ = fit(rows, tmp_path, scorer=TellingScorer())
    assert heads.find(TEAM).needs_base
    assert report.decisions[0].calibrated.loss < 0.2


def test_rewards_give_the_outcome_that_earns_most(tmp_path):
    report, heads, scorer = fit(reward_rows(300), tmp_path, method="reward")
    rows = reward_rows(150, seed=1)
    shares = answers(heads, scorer, rows)
    earned = np.array([row.labels[share.argmax()] for row, share in zip(rows, shares, strict=True)])
    best = np.array([row.labels.max() for row in rows])
    assert (earned == best).mean() > 0.93
    assert report.method == "reward"
    assert report.decisions[0].calibrated.loss < 0.4


def test_rewards_that_are_all_equal_teach_nothing(tmp_path):
    rows = [make_row(row.context, TEAM, [1.0, 1.0, 1.0]) for row in team_rows(30)]
    _, heads, scorer = fit(rows, tmp_path, method="reward")
    for share in answers(heads, scorer, rows[:5]):
        assert share == pytest.approx([1 / 3] * 3, abs=0.1)


def test_the_parent_is_a_candidate_and_its_other_decisions_are_kept(tmp_path):
    old = team_rows(300, noise=0.0)
    levels = [make_row(row.context, LEVEL, row.labels) for row in team_rows(60, seed=8)]
    _, parent, scorer = fit([*old, *levels], tmp_path / "parent")
    new = [make_row(row.context, TEAM, row.labels) for row in team_rows(40, seed=9, noise=0.0)]
    seen = [make_row(row.context, TEAM, row.labels, is_seen=True) for row in old[:40]]
    report, heads, _ = fit([*new, *seen], tmp_path / "child", parent=parent)
    [decision] = report.decisions
    judged = {one.name: one.n for one in decision.candidates}
    assert judged["parent"] == 40
    assert "parent" in decision.weights
    assert len(heads) == 2
    np.testing.assert_array_equal(
        answers(heads, scorer, levels[:5]), answers(parent, scorer, levels[:5])
    )
    rows = team_rows(150, seed=10, noise=0.0)
    targets = np.array([row.labels for row in rows])
    assert log_loss(answers(heads, scorer, rows), targets) < 0.3
    _, alone, _ = fit(new, tmp_path / "other", parent=parent, same_features=False)
    assert len(alone) == 1


@pytest.fixture(scope="module")
def noisy_parent(tmp_path_factory):
    rows = team_rows(100, seed=30, noise=0.4)
    _, parent, scorer = fit(rows, tmp_path_factory.mktemp("noisy"))
    return rows, parent, scorer


def as_seen(rows):
    return [make_row(row.context, TEAM, row.labels, is_seen=True) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("n_new", "n_seen"), [(0, 100), (5, 100), (25, 25)])
def test_a_parent_is_not_judged_by_its_training_rows(tmp_path, noisy_parent, n_new, n_seen):
    seen, parent, scorer = noisy_parent
    new = team_rows(n_new, seed=31, noise=0.4)
    report, heads, _ = fit([*new, *as_seen(seen[:n_seen])], tmp_path, parent=parent)
    [decision] = report.decisions
    assert "parent" not in {one.name for one in decision.candidates}
    assert (decision.chosen, decision.calibrated) == ("parent", None)
    assert "the parent's head as it is" in str(report)
    rows = team_rows(20, seed=32)
    np.testing.assert_array_equal(answers(heads, scorer, rows), answers(parent, scorer, rows))


def test_a_parent_that_new_rows_contradict_is_replaced(tmp_path, noisy_parent):
    seen, parent, scorer = noisy_parent
    # From today on every word means another team.
    moved = [make_row(row.context, TEAM, np.roll(row.labels, 1)) for row in team_rows(28, seed=33)]
    taught = [make_row(row.context, TEAM, np.roll(row.labels, 1)) for row in as_seen(seen)]
    taught = [make_row(row.context, TEAM, row.labels, is_seen=True) for row in taught]
    report, heads, _ = fit([*moved, *taught], tmp_path, parent=parent)
    assert report.decisions[0].chosen != "parent"
    rows = team_rows(100, seed=34, noise=0.0)
    right = np.array([np.roll(row.labels, 1) for row in rows]).argmax(axis=1)
    assert (answers(heads, scorer, rows).argmax(axis=1) == right).mean() > 0.6


def test_a_parent_that_reads_other_vectors_is_not_kept(tmp_path, noisy_parent):
    seen, parent, _ = noisy_parent
    report, _, _ = fit(as_seen(seen[:60]), tmp_path, parent=parent, same_features=False)
    assert report.decisions[0].chosen != "parent"


def test_few_unseen_rows_with_base_answers_do_not_judge(tmp_path):
    rows = [*team_rows(40, seed=35), *as_seen(team_rows(60, seed=36))]
    scorer = WordScorer()
    (tmp_path / "features").mkdir()
    features = compute_features(rows, scorer, tmp_path / "features", quiet)
    data = decision_data(rows, range(len(rows)), features, has_rewards=False)
    data.is_scored[~data.is_seen] = np.arange(40) < 20
    choice = choose_head(data, None, 1, lambda: None)
    assert all(not any(option.cost) and len(option.rows) == 40 for option in choice.options[:-1])


def test_a_blend_that_left_the_base_out_is_measured_on_every_row_alone(tmp_path):
    rows = team_rows(300, seed=37)
    (tmp_path / "features").mkdir()
    features = compute_features(rows, WordScorer(), tmp_path / "features", quiet)
    data = decision_data(rows, range(len(rows)), features, has_rewards=False)
    data.is_scored[60:] = False
    # What the base says is noise: no blend keeps it.
    data.base[:] = np.random.default_rng(1).normal(0, 8, data.base.shape)
    choice = choose_head(data, None, 1, lambda: None)
    for option in choice.options:
        assert option.cost[1] or len(option.rows) >= 300 / 5, option.name
        assert option.cost[1] == ("base" in option.name or "marker" in option.name), option.name


def test_a_head_of_the_greatest_depth_has_nothing_on_top():
    deep, shallow = SimpleNamespace(depth=MOST_DEPTH), SimpleNamespace(depth=MOST_DEPTH - 1)
    member = SimpleNamespace(candidate=SimpleNamespace(name=PARENT))
    whole = SimpleNamespace(members=[member])
    assert is_too_deep(whole, deep)
    assert not is_too_deep(whole, shallow)
    assert not is_too_deep(SimpleNamespace(members=[]), deep)
    assert not is_too_deep(whole, None)


def test_a_parent_that_reads_no_markers_leaves_them_where_they_are():
    class Unread(np.ndarray):
        def __getitem__(self, _):
            raise AssertionError("the markers are copied")

    asked = []

    def evaluate(inputs):
        asked.append(inputs.markers)
        return np.zeros((20, 3), np.float32)

    markers = np.zeros((20, 3, 4), np.float32).view(Unread)
    data = SimpleNamespace(
        targets=np.zeros((20, 3)),
        contexts=["a"] * 20,
        vectors=None,
        base=None,
        markers=markers,
        evidence=None,
        is_scored=np.zeros(20, bool),
    )
    head = SimpleNamespace(needs_base=False, needs_evidence=False, evaluate=evaluate)
    parent_candidate(data, head)
    assert asked[0] is markers


def test_killed_while_it_clears_up_it_makes_the_same_again(tmp_path, monkeypatch):
    rows = team_rows(60)
    fit(rows, tmp_path / "whole")

    def killed(folder, **_):
        for file in folder.glob(f"*/{SPECS}"):
            file.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting.shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            fit(rows, tmp_path / "cut")
    fit(rows, tmp_path / "cut")
    for file in (SPECS, NUMBERS):
        whole, cut = [(tmp_path / name / "heads" / file).read_bytes() for name in ("whole", "cut")]
        assert whole == cut


@pytest.mark.slow
def test_a_long_line_of_models_nests_no_deeper_than_a_bound(tmp_path):
    parent = None
    for number in range(6):
        rows = team_rows(40, seed=20 + number, noise=0.3)
        _, parent, _ = fit(rows, tmp_path / str(number), parent=parent)
        assert parent.find(TEAM).depth <= 3


def test_another_decision_has_no_head(fitted):
    assert fitted[1].find(RenderedDecision("single", "Which one?", TEAM.outcomes)) is None
