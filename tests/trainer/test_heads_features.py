from __future__ import annotations

import numpy as np
import pytest

from steelyard.scoring.hashing import HashingScorer
from steelyard.trainer.features import (
    base_characters,
    choose_base_rows,
    compute_features,
    reading_cost,
)
from steelyard.trainer.vectors import in_half_precision
from support.families.tuning_rows import LEVEL, TEAM, WIDTH, WordScorer, make_row, team_rows


def read(rows, folder, scorer):
    told = []
    features = compute_features(rows, scorer, folder, lambda *one: told.append(one))
    return features, told


def test_contexts_and_outcomes_have_vectors_and_rows_the_bases_scores(tmp_path):
    rows = team_rows(30)
    scorer = WordScorer()
    features, told = read(rows, tmp_path, scorer)
    assert features.width == WIDTH
    assert set(features.vectors) == {row.context for row in rows} | set(TEAM.outcomes)
    assert sorted(features.base) == list(range(30))
    [[alone]] = scorer.score([request_of(rows[7])])
    np.testing.assert_array_equal(features.base[7].logits, alone.logits)
    np.testing.assert_array_equal(features.base[7].marker_vectors, alone.marker_vectors)
    assert told[-1][0] == told[-1][1]
    assert [one[0] for one in told] == sorted(one[0] for one in told)


def test_texts_whose_vectors_are_there_are_not_read_again(tmp_path):
    rows = team_rows(30)
    scorer = WordScorer()
    features, _ = read(rows, tmp_path, scorer)
    n_embedded = scorer.n_embedded
    texts = [*(row.context for row in rows), "an unseen text", "an unseen text"]
    vectors = features.sparing(scorer.embed)(texts)
    assert scorer.n_embedded == n_embedded + 1
    np.testing.assert_array_equal(vectors, in_half_precision(scorer.embed(texts)))


def request_of(row):
    from steelyard.decisions.rendering import RenderedRequest

    return RenderedRequest(row.context, (row.decision,))


def test_stored_features_are_not_read_again(tmp_path):
    rows = team_rows(150)
    first = WordScorer()
    whole, _ = read(rows, tmp_path, first)
    again = WordScorer()
    same, _ = read(rows, tmp_path, again)
    assert (again.n_embedded, again.n_scored) == (0, 0)
    assert same.vectors.keys() == whole.vectors.keys()
    np.testing.assert_array_equal(same.base[149].logits, whole.base[149].logits)


def test_it_goes_on_where_it_was_cut_off(tmp_path):
    rows = team_rows(150)

    class Dying(WordScorer):
        def score(self, requests):
            if self.n_scored:
                raise KeyboardInterrupt
            return super().score(requests)

    with pytest.raises(KeyboardInterrupt):
        read(rows, tmp_path, Dying())
    scorer = WordScorer()
    features, _ = read(rows, tmp_path, scorer)
    assert (scorer.n_embedded, scorer.n_scored) == (0, 150 - 64)
    assert len(features.base) == 150


def test_decisions_of_one_context_are_asked_together(tmp_path):
    rows = [
        make_row(row.context, decision, row.labels)
        for row in team_rows(10)
        for decision in (TEAM, LEVEL)
    ]
    scorer = WordScorer()
    features, _ = read(rows, tmp_path, scorer)
    assert scorer.n_scored == 10
    for place, row in enumerate(rows):
        [[alone]] = scorer.score([request_of(row)])
        np.testing.assert_array_equal(features.base[place].logits, alone.logits)


def test_a_part_that_was_cut_short_is_read_again(tmp_path):
    rows = team_rows(20)
    read(rows, tmp_path, WordScorer())
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:50])
    scorer = WordScorer()
    read(rows, tmp_path, scorer)
    assert scorer.n_scored == 20


def test_another_scorer_or_other_words_are_read_anew(tmp_path):
    rows = team_rows(20)
    read(rows, tmp_path, WordScorer())
    other = WordScorer("other")
    read(rows, tmp_path, other)
    assert other.n_scored == 20
    worded = WordScorer()
    read([make_row(row.context, LEVEL, row.labels) for row in rows], tmp_path, worded)
    assert worded.n_scored == 20


def test_the_base_reads_as_many_rows_of_each_decision_within_a_bound():
    rows = team_rows(90)
    rows += [make_row(row.context, LEVEL, row.labels) for row in team_rows(30, seed=1)]
    bound = 40 * max(map(reading_cost, rows))
    chosen = choose_base_rows(rows, bound)
    assert 0 < sum(reading_cost(rows[i]) for i in chosen) <= bound
    n_team = sum(rows[i].decision == TEAM for i in chosen)
    assert abs(2 * n_team - len(chosen)) <= 1
    backwards = choose_base_rows(rows[::-1], bound)
    assert {rows[::-1][i].context for i in backwards} == {rows[i].context for i in chosen}
    assert choose_base_rows(rows, 10**9) == list(range(len(rows)))
    assert choose_base_rows(rows) == choose_base_rows(rows, 120_000)
    assert [base_characters(n) for n in (8, 480, 1_000, 9_000)] == [
        120_000,
        120_000,
        250_000,
        600_000,
    ]


def test_a_scorer_without_vectors_gives_none(tmp_path):
    features, _ = read(team_rows(10), tmp_path, HashingScorer())
    assert (features.width, features.vectors) == (0, {})
    assert len(features.base) == 10
