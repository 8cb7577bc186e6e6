"""The rows that teach negation, absence and noise: questions still have their answers."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from steelyard_base_recipe.facts import Fact, facts, made_fact, wants
from steelyard_base_recipe.intents import made_intent, organisations
from steelyard_base_recipe.levels import made_levels, scales
from steelyard_base_recipe.mixture import Mixture, MixtureRow
from steelyard_base_recipe.negation import negated, reworded, split_question, statement
from steelyard_base_recipe.noise import (
    MOST_WORDS,
    foreign_choice,
    misleading,
    surround,
    unanswered,
)
from steelyard_base_recipe.records import NAMES, lexicon, made_record

FACTS = (*facts(), *wants())
QUESTIONS = (
    "Is this headline clickbait?",
    "Does the customer ask for a refund?",
    "Would a moderator find this post offensive?",
    "Can we conclude: The cat sat on the mat.",
    "Is this statement supported by the text? The cat sat.",
    "is the sky blue?",
    "Judge the claim: it rains. Is it supported?",
)
#: What turns an answer round once; two of them leave it as it was.
_TURNS = re.compile(
    r"\b(?:not|no|false|untrue|wrong|incorrect|mistake|deny|fail|unsupported|cannot|lacking|"
    r"missing|beyond|refuse)\b"
)


def turns(text: str, question: str) -> int:
    plain = text.replace(question.rstrip("?"), "").casefold()
    # Ways to say it that have two of the words, or one that does not count.
    for once in ("or that is not so", "or against it"):
        plain = plain.replace(once, "not" if "so" in once else "")
    return len(_TURNS.findall(plain))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_negated_question_is_turned_once_and_a_reworded_one_not(question: str) -> None:
    rng = np.random.default_rng(1)
    turned = {negated(question, rng) for _ in range(200)}
    same = {reworded(question, rng) for _ in range(200)}
    assert len(turned) >= 7
    assert len(same) >= 5
    assert not turned & same
    for text in turned:
        assert turns(text, question) % 2 == 1, text
    for text in same:
        assert turns(text, question) % 2 == 0, text


def test_a_question_is_split_at_its_subject() -> None:
    assert split_question("Is this post sexist?") == ("is", "this post", "sexist")
    assert split_question("Do I qualify?") == ("do", "I", "qualify")
    parts = split_question("Does the writer of the review like it?")
    assert parts is not None
    assert statement(parts, denied=True) == "the writer of the review does not like it"
    for other in ("Why is it so?", "Is it? Or is it not?", "Question: is it so?", "What now?"):
        assert split_question(other) is None


@pytest.mark.parametrize("make", [made_record, made_fact])
def test_made_up_texts_say_one_thing_or_the_other_equally_often(make) -> None:
    rng = np.random.default_rng(2)
    right = Counter()
    for _ in range(300):
        context, asked = make(rng)
        checks = [one for one in asked if one.kind == "binary"]
        assert {one.right for one in checks} == {0, 1}
        right.update(one.right for one in checks[:1])
        for one in asked:
            assert len(set(one.outcomes)) == len(one.outcomes)
            assert "{" not in context + one.question + "".join(one.outcomes)
    assert 90 < right[0] < 210


def test_a_record_is_answered_by_its_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    from steelyard_base_recipe import records

    monkeypatch.setattr(records, "_STATED", ("The {n} is {a}.",))
    monkeypatch.setattr(records, "_QUESTIONS", ("Is the {n} {a}?",) * 3)
    monkeypatch.setattr(records, "_OTHERS", ("Call {i}.",))
    rng = np.random.default_rng(3)
    for _ in range(200):
        context, asked = made_record(rng)
        for one in asked:
            if one.kind == "binary":
                said = one.question.removeprefix("Is the ").rstrip("?")
                holds = any(
                    f"the {said}".replace("the ", "", 1) == f"{noun}{rest}"
                    for noun, rest in re.findall(r"The (.+?)( .+?)\.", context.replace(" is ", " "))
                )
                assert holds == (one.right == 0), (context, one)
            else:
                state = one.outcomes[one.right].split(": ")[-1].split(" is ")[-1]
                assert state in context


def test_a_fact_is_asked_both_ways_and_every_wording_is_complete() -> None:
    assert len(facts()) >= 100
    assert len(wants()) >= 40
    for fact in FACTS:
        assert len(fact.holds) == len(fact.fails) == 2
        assert fact.asks
        assert fact.opposites
        assert all(asked.endswith("?") for asked in (*fact.asks, *fact.opposites))
        texts = (*fact.holds, *fact.fails, *fact.asks, *fact.opposites)
        assert len(set(texts)) == len(texts)
    rng = np.random.default_rng(4)
    for _ in range(200):
        context, asked = made_fact(rng)
        for one in asked:
            if one.kind == "single":
                # The claim that the text rules out is the other one.
                fact = next(f for f in FACTS if len({*one.outcomes} & worded_claims(f)) == 2)
                # The longest part that is there: "got the job" is in "somebody else got the job", too.
                said = [text for text in (*fact.holds, *fact.fails) if starts(text) in context]
                holds = max(said, key=lambda text: len(starts(text))) in fact.holds
                assert (one.outcomes[one.right] in worded_claims(fact, denied=False)) == holds


def worded_claims(fact: Fact, *, denied: bool | None = None) -> set[str]:
    """Return a fact's claim and its denial, for everybody whom it may be about."""
    texts = {None: (fact.claim, fact.denied), True: (fact.denied,), False: (fact.claim,)}[denied]
    return {text.replace("{who}", name) for text in texts for name in NAMES}


def starts(text: str) -> str:
    """Return the longest part of a wording that has no place to fill."""
    return max(re.split(r"\{\w+\}", text), key=len).strip()[1:]


def test_levels_are_equally_frequent_and_in_their_order() -> None:
    rng = np.random.default_rng(5)
    right = Counter()
    for _ in range(600):
        context, [one] = made_levels(rng)
        assert one.kind == "ordinal"
        assert len(set(one.outcomes)) == len(one.outcomes) in {2, 3, 4, 5}
        assert not set("{}|") & set(context + one.question + "".join(one.outcomes))
        if len(one.outcomes) == 5:
            right[one.right] += 1
    assert min(right.values()) > 0.6 * max(right.values())
    assert len(scales()) >= 10
    for scale in scales():
        assert {len(names) for names in scale.names} == {len(scale.phrases)} == {5}
        # No level's own words give it away.
        for names in scale.names:
            for level, phrases in zip(names, scale.phrases, strict=True):
                assert not any(level.casefold() == phrase.casefold() for phrase in phrases)


def test_a_message_is_asked_for_its_subject_in_two_wordings() -> None:
    messages = [
        text for about in organisations().values() for one in about.values() for text in one
    ]
    assert len(set(messages)) == len(messages) >= 200
    others, n_right = set(), Counter()
    for seed in range(400):
        context, asked = made_intent(np.random.default_rng(seed))
        first, second = asked
        assert first.question != second.question
        assert (first.outcomes, first.right) == (second.outcomes, second.right)
        assert len(set(first.outcomes)) == len(first.outcomes) >= 3
        answer = first.outcomes[first.right]
        [text] = {text for text in messages if text.rstrip(".") in context}
        [(receiver, name)] = [
            (receiver, name)
            for receiver, about in organisations().items()
            for name, said in about.items()
            if text in said
        ]
        if answer not in (receiver, name):
            others.add(answer)
            assert not {receiver, name} & set(first.outcomes)
        n_right[answer in (receiver, name)] += 1
    assert others < {"other", "something else", "none of these", "anything else", "general"}
    assert n_right[True] > 350


def test_no_word_of_a_reserved_domain_is_taught() -> None:
    nouns = {noun for entry in lexicon() for noun in entry[0]}
    states = {state for entry in lexicon() for state in entry[1:]}
    assert len(lexicon()) >= 40
    assert len(states) == 2 * len(lexicon()) - sum(
        n - 1 for n in Counter(s for e in lexicon() for s in e[1:]).values()
    )
    assert not states & {"malignant", "benign", "poisonous", "edible", "guilty", "void", "injured"}
    said = " ".join(t for f in FACTS for t in (*f.holds, *f.fails, f.claim, f.denied))
    said += str(organisations())
    assert not {
        "biopsy",
        "penicillin",
        "lease",
        "jury",
        "patent",
        "striker",
        "slugs",
        "mushrooms",
    } & {*re.findall(r"\w+", said.casefold())}
    assert not nouns & {"tumour", "biopsy", "lease", "jury", "patent", "striker", "tree", "soil"}


def make_row(
    context: str, source: str, kind: str, question: str, outcomes: list[str]
) -> MixtureRow:
    decision = {"id": "d", "kind": kind, "question": question, "outcomes": outcomes}
    return MixtureRow(context, [decision], {"d": {outcomes[0]: 1.0}}, source)


@pytest.fixture
def mixture() -> Mixture:
    rows = {
        "snli": [
            make_row("A dog runs. It barks.", "snli", "binary", "Does it follow: X?", ["yes", "no"])
        ],
        "hwu64": [make_row("play a song", "hwu64", "single", "Which intent?", ["music", "alarm"])],
        "edos_sexism": [make_row("bad", "edos_sexism", "binary", "Is it sexist?", ["yes", "no"])],
    }
    labels = {"hwu64": ["music play", "alarm set", "song like"]}
    return Mixture(rows, dict.fromkeys(rows, 1 / 3), labels)


def test_a_context_stays_whole_among_plain_texts(mixture: Mixture) -> None:
    rng = np.random.default_rng(4)
    places = Counter()
    for _ in range(60):
        text = surround("It is mine.", "cad_nli", mixture, rng, is_statement=True)
        before, found, after = text.partition("It is mine.")
        assert found
        assert 10 <= len((before + after).split()) <= MOST_WORDS
        assert "bad" not in text
        places[bool(before), bool(after)] += 1
    assert {(True, False), (False, True), (True, True)} <= set(places)
    plain = {"A", "It", "barks.", "dog", "is", "mine.", "runs."}
    others = [set(surround("It is mine.", "cad_nli", mixture, rng).split()) for _ in range(60)]
    assert sum(not words <= plain for words in others) > 10  # made-up statements, too
    assert sum("barks." in words for words in others) > 10
    # A message could be what is asked about.
    assert not any("play" in words for words in others)
    alone = Mixture({"edos_sexism": mixture.rows["edos_sexism"]}, {"edos_sexism": 1.0})
    assert surround("It is mine.", "x", alone, rng) == "It is mine."


def test_unanswerable_questions_come_from_other_sources(mixture: Mixture) -> None:
    rng = np.random.default_rng(5)
    assert unanswered("dbpedia", mixture, rng) == "Does it follow: X?"
    assert unanswered("snli", mixture, rng) is None
    mixture.rows["snli"][0].decisions[0]["question"] = "Does the text contradict X?"
    assert unanswered("dbpedia", mixture, rng) is None
    assert foreign_choice("dbpedia", mixture, rng) == ("Which intent?", ["music", "alarm"])
    assert foreign_choice("snips", mixture, rng) is None


def test_a_misleading_outcome_shares_a_word_and_is_none_of_the_others(mixture: Mixture) -> None:
    rng = np.random.default_rng(6)
    found = {
        misleading("set an alarm song", ["alarm set"], "hwu64", mixture, rng) for _ in range(9)
    }
    assert found <= {"song like"}
    assert misleading("nothing", ["music"], "hwu64", mixture, rng) is None
    assert misleading("an alarm", ["music"], "other", mixture, rng) is None
