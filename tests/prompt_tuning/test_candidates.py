from __future__ import annotations

import pytest

from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import read_request
from steelyard.prompt_tuning.candidates import MAX_DESCRIPTION, Candidates, combine
from steelyard.prompt_tuning.telling_words import TellingWords, cut
from steelyard.prompt_tuning.wording import (
    Wording,
    as_sent,
    changes_between,
    reworded,
    wording_of,
)

MATCHES = ["The team won the match today", "The team lost a match", "Our team plays a match soon"]
MARKETS = ["Shares fell on the market", "The market gained as shares rose", "Shares and the market"]


def decision_of(**sent: object) -> Decision:
    (decision,) = read_request({"context": "", "decisions": [{"id": "d", **sent}]}).decisions
    return decision


TOPIC = decision_of(kind="single", question="What is it about?", outcomes=["Sports", "bizNews"])


@pytest.fixture
def words() -> TellingWords:
    return TellingWords(MATCHES + MARKETS, [0] * 3 + [1] * 3, 2)


def candidates_of(decision: Decision, words: TellingWords) -> Candidates:
    return Candidates(decision, wording_of(decision), words)


def test_words_tell_an_outcome_where_its_rows_say_them_more_often(words):
    assert set(words.of(0, 2)) == {"team", "match"}
    assert set(words.of(1, 2)) <= {"market", "shares", "the market"}
    assert words.of(0, 0) == ()
    assert set(words.of(1, 2, against=0)) <= {"market", "shares", "the market"}


def test_a_letter_cut_off_by_an_apostrophe_is_no_word():
    asked = TellingWords(["What 's the fee ?"] * 3 + ["Name a river"] * 3, [0] * 3 + [1] * 3, 2)
    assert set(asked.of(0, 12)) == {"fee"}


def test_many_telling_words_are_tried_for_an_outcome():
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows = [" ".join(f"{side}{one}x" for one in letters) for side in "pq" for _ in range(3)]
    many = TellingWords(rows, [0] * 3 + [1] * 3, 2)
    made = candidates_of(TOPIC, many).whole(wording_of(TOPIC))
    counts = {len((one.descriptions[0] or "").split(", ")) for one in made}
    assert {3, 6, 12, 24} <= counts


def test_words_are_the_same_in_any_order_of_rows(words):
    turned = TellingWords((MATCHES + MARKETS)[::-1], [1] * 3 + [0] * 3, 2)
    assert [turned.of(place, 6) for place in (0, 1)] == [words.of(place, 6) for place in (0, 1)]
    assert turned.examples(0, 2) == words.examples(0, 2)


def test_examples_are_rows_of_the_outcome_each_once(words):
    assert set(words.examples(0, 2)) <= set(MATCHES)
    assert len(set(words.examples(0, 3))) == 3
    assert words.examples(0, 0) == ()


def test_a_long_row_is_cut_at_a_word():
    assert cut("word " * 50, 20) == "word word word …"
    (example,) = TellingWords(["word " * 100, "other"], [0, 1], 2).examples(0, 1)
    assert len(example) <= 160


def test_whole_wordings_change_the_question_or_every_description(words):
    best = wording_of(TOPIC)
    made = candidates_of(TOPIC, words).whole(best)
    assert len(made) == len(set(made))
    assert best not in made
    assert any(one.question != best.question for one in made)
    assert any("team" in (one.descriptions[0] or "") for one in made)
    assert any(
        f'such as "{text}"' in (one.descriptions[1] or "") for one in made for text in MARKETS
    )
    assert any(one.descriptions == (None, "biz news") for one in made)


def test_a_longer_question_loses_its_asides(words):
    question = "What is it about (one topic)? Take the main topic of the text."
    asked = decision_of(kind="single", question=question, outcomes=["a", "b"])
    questions = {one.question for one in candidates_of(asked, words).whole(wording_of(asked))}
    assert "What is it about? Take the main topic of the text." in questions
    assert "What is it about?" in questions


@pytest.mark.parametrize(
    ("question", "positive"),
    [("Is it not late?", "Is it late?"), ("Isn't it late?", "Is it late?")],
    ids=["not", "n't"],
)
def test_a_negated_question_is_turned_round_with_its_answers(question, positive, words):
    asked = decision_of(kind="binary", question=question)
    made = candidates_of(asked, words).whole(wording_of(asked))
    turned = [one for one in made if one.question == positive]
    assert [one.descriptions for one in turned] == [("no, it is not so", "yes, it is so")]


def test_one_outcome_is_described_otherwise_the_others_stay(words):
    best = Wording(question="Which?", descriptions=("as it was", "stays"))
    made = candidates_of(TOPIC, words).of_outcome(best, 0, rival=1)
    assert {one.descriptions[1] for one in made} == {"stays"}
    assert {one.question for one in made} == {"Which?"}
    assert None in {one.descriptions[0] for one in made}


def test_an_ordinal_level_is_never_left_without_a_line(words):
    scale = decision_of(kind="ordinal", question="How?", rubric=["low", "high"])
    best = wording_of(scale)
    made = candidates_of(scale, words)
    assert all(all(one.descriptions) for one in made.whole(best))
    assert all(all(one.descriptions) for one in made.of_outcome(best, 0, None))


def test_descriptions_have_a_bound(words):
    own = decision_of(kind="single", question="?", outcomes={"a": "x " * 400, "b": "y"})
    made = candidates_of(own, words).whole(wording_of(own))
    new = [one for one in made if one.descriptions[0] != wording_of(own).descriptions[0]]
    assert all(len(one.descriptions[0] or "") <= MAX_DESCRIPTION for one in new)


def test_changes_are_combined_the_first_of_two_wins():
    best = Wording(question="?", descriptions=("a", "b"))
    other = Wording(question="!", descriptions=("c", "b"))
    combined = combine(best, [best.describing(0, "x"), other, best.describing(1, "y")])
    assert combined == Wording(question="!", descriptions=("x", "y"))


@pytest.mark.parametrize(
    ("sent", "descriptions", "wanted"),
    [
        ({"kind": "single", "outcomes": ["a", "b"]}, ("x", None), {"a": "x", "b": None}),
        ({"kind": "single", "outcomes": {"a": "x", "b": "y"}}, (None, None), ["a", "b"]),
        ({"kind": "binary"}, (None, "y"), {"yes": None, "no": "y"}),
        ({"kind": "binary"}, (None, None), None),
    ],
    ids=["described", "plain again", "binary", "binary plain"],
)
def test_a_decision_is_written_as_it_was_sent(sent, descriptions, wanted):
    decision = decision_of(question="?", **sent)
    wording = Wording(question="New?", descriptions=descriptions)
    written = as_sent({"id": "d", "question": "?", **sent}, decision.outcomes.names, wording)
    assert written.get("outcomes") == wanted
    again = decision_of(**{name: value for name, value in written.items() if name != "id"})
    assert wording_of(again) == wording
    assert again == reworded(decision, wording)


def test_changes_name_their_parts():
    before = Wording(question="?", descriptions=(None, "same"))
    after = Wording(question="!", descriptions=("now", "same"))
    found = [(one.part, one.before, one.after) for one in changes_between(TOPIC, before, after)]
    assert found == [("question", "?", "!"), ("outcome:Sports", "", "now")]
    scale = decision_of(kind="ordinal", question="?", rubric=["low", "same"])
    assert [one.part for one in changes_between(scale, before, after)] == ["question", "level:0"]
