"""The search, on a made-up model that likes some words."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.decisions.validation import read_request
from steelyard.prompt_tuning.candidates import Candidates
from steelyard.prompt_tuning.searching import Scores, SearchState, run_round
from steelyard.prompt_tuning.telling_words import TellingWords
from steelyard.prompt_tuning.wording import wording_of

TEXTS = [f"the team won match {n}" for n in range(60)] + [f"shares fell {n}" for n in range(60)]
LABELS = np.repeat([0, 1], 60)
TARGETS = np.eye(2)[LABELS]
(DECISION,) = read_request(
    {
        "context": "",
        "decisions": [{"id": "d", "kind": "single", "question": "?", "outcomes": ["a", "b"]}],
    }
).decisions


class Liking:
    """Reads an outcome as likelier where its description has words of the context."""

    def __init__(self, bonus: float) -> None:
        self.bonus = bonus
        self.n_scored = 0
        self.seen = set()

    def __call__(self, wordings, rows):
        found = []
        for wording in wordings:
            self.n_scored += len(rows)
            self.seen.add(wording)
            logits = np.array(
                [
                    [
                        self.bonus * len(set((said or "").split(", ")) & set(TEXTS[row].split()))
                        for said in wording.descriptions
                    ]
                    for row in rows
                ],
                dtype=float,
            )
            told = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            found.append(Scores(-np.log(told[np.arange(len(rows)), LABELS[rows]]), told))
        return found


@pytest.fixture
def candidates():
    return Candidates(DECISION, wording_of(DECISION), TellingWords(TEXTS, LABELS.tolist(), 2))


def start():
    return SearchState(best=wording_of(DECISION), best_loss=float(np.log(2)))


def test_a_round_takes_a_step_that_is_surely_better(candidates):
    after = run_round(start(), candidates, TARGETS, Liking(2.0))
    assert after.best_loss < 0.4
    assert "team" in (after.best.descriptions[0] or "")
    assert [one.round for one in after.rounds] == [1]
    assert run_round(start(), candidates, TARGETS, Liking(2.0)) == after


def test_a_search_without_a_better_wording_is_over_after_two_rounds(candidates):
    state = start()
    for _ in range(2):
        state = run_round(state, candidates, TARGETS, Liking(0.0))
    assert state.best == wording_of(DECISION)
    assert state.is_over
    assert [one.best_loss for one in state.rounds] == pytest.approx([np.log(2)] * 2)


def test_rounds_in_turn_change_the_whole_and_single_outcomes(candidates):
    best = start().best
    whole = set(candidates.whole(best))
    single = {one for place in (0, 1) for one in candidates.of_outcome(best, place, None)} - whole
    model = Liking(0.0)
    first = run_round(start(), candidates, TARGETS, model)
    assert whole <= model.seen
    assert not single & model.seen
    run_round(first, candidates, TARGETS, model)
    assert single <= model.seen


def test_most_candidates_see_a_part_of_the_rows(candidates):
    model = Liking(2.0)
    run_round(start(), candidates, TARGETS, model)
    tried = len(candidates.whole(start().best))
    assert model.n_scored < (tried + 2 * 14) * len(TEXTS)
