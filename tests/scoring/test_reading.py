from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.scoring.onnx import OnnxScorer
from steelyard.scoring.reading import (
    FIRST_READING,
    MAX_SENTENCE,
    MIN_SENTENCE,
    decision_read,
    identity_at,
    read_request,
    sentences_of,
)
from support.models.random_model import make_words

ONE, TWO, THREE = (make_words(n, n) for n in (7, 12, 20))
TEAM = RenderedDecision("single", "Which team?", ("bankCard", "B) river", "cold_water: late"))
OPEN = RenderedDecision("binary", "Is it open?", ("yes", "no"))


@pytest.mark.parametrize(
    "text",
    [
        f"{ONE}. {TWO}! {THREE}?",
        f"{ONE}\n\n{TWO}\n{THREE}",
        f'{ONE}." {TWO}.) {THREE}',
        # A context that is JSON has its lines' ends as two characters.
        f'{{"body": "{ONE}\\n{TWO}.", "place": "{THREE}"}}',
    ],
)
def test_sentences_end_at_marks_and_lines(random_tokenizer, text):
    found = sentences_of(text, random_tokenizer)
    assert len(found) == 3
    for sentence, words in zip(found, (ONE, TWO, THREE), strict=True):
        inside = " ".join(map(str, sentence))
        assert " ".join(map(str, random_tokenizer.encode(words))) in inside


def test_one_sentence_is_the_context_itself(random_tokenizer):
    for text in (THREE, f"{THREE}.", f"{THREE}. A. b", "", "no context", "3.5 v2.0 a.b"):
        assert sentences_of(text, random_tokenizer) == []


def test_a_sentence_has_a_bounded_number_of_tokens(random_tokenizer):
    text = f"a. b! c? {make_words(3 * MAX_SENTENCE)}. d. {TWO}. e."
    found = sentences_of(text, random_tokenizer)
    assert all(MIN_SENTENCE <= len(one) <= MAX_SENTENCE + MIN_SENTENCE for one in found)
    assert set(random_tokenizer.encode(text)) == {token for one in found for token in one}
    many = sentences_of("a. " * 6_000, random_tokenizer)
    assert len(many) <= 12_000 / MIN_SENTENCE


def test_the_first_reading_takes_names_and_contexts_as_they_are(random_tokenizer):
    request = RenderedRequest(f"{ONE}. {TWO}.", (TEAM, OPEN))
    first = read_request(request, random_tokenizer, FIRST_READING)
    second = read_request(request, random_tokenizer)
    encode = random_tokenizer.encode
    assert first.sentences == ()
    assert list(first.decisions[0].outcomes) == [encode(text) for text in TEAM.outcomes]
    assert second.sentences == sentences_of(request.context, random_tokenizer)
    words = ("bank Card", "B) river", "cold water: late")
    assert list(second.decisions[0].outcomes) == [encode(text) for text in words]
    assert (second.context, second.decisions[1]) == (first.context, first.decisions[1])
    asked = RenderedRequest(request.context, (OPEN,))
    assert read_request(asked, random_tokenizer).sentences == ()


def test_a_negated_question_is_asked_without_its_negation(random_tokenizer, scorer):
    encode = random_tokenizer.encode
    negated = replace(OPEN, question="Is it not open?")
    [read] = read_request(RenderedRequest(ONE, (negated,)), random_tokenizer).decisions
    assert read.question == encode(OPEN.question)
    assert list(read.outcomes) == [encode("no"), encode("yes")]
    assert read.alone == (None, read.question)
    # What was read is read once more as it is: fine-tuning leaves outcomes out in between.
    question, outcomes = decision_read(negated)
    again = replace(negated, question=question, outcomes=outcomes)
    assert read_request(RenderedRequest(ONE, (again,)), random_tokenizer).decisions == [read]
    asked, turned = scorer.score([RenderedRequest(ONE, (OPEN, negated))])[0]
    np.testing.assert_allclose(asked.logits, turned.logits[::-1], atol=1e-4)
    # An earlier reading takes it as it was sent, and so is a question whose yes is described.
    [sent] = read_request(RenderedRequest(ONE, (negated,)), random_tokenizer, 3).decisions
    assert (sent.question, sent.yes) == (encode(negated.question), 0)
    described = replace(negated, outcomes=("yes: it is shut", "no"))
    [kept] = read_request(RenderedRequest(ONE, (described,)), random_tokenizer).decisions
    assert (kept.question, kept.yes) == (encode(negated.question), 0)


def test_a_reading_has_an_identity_of_its_own():
    assert identity_at("ab", FIRST_READING) == "ab"
    assert len({identity_at("ab", reading) for reading in (1, 2, 3, 4)}) == 4
    assert identity_at("", 2) == ""


@pytest.fixture(params=["onnxruntime-float32", "onnxruntime-int8"])
def scorer(load, request: pytest.FixtureRequest) -> OnnxScorer:
    return load("random", request.param).scorer


def test_surrounding_sentences_take_no_similarity_from_the_deciding_one(scorer, monkeypatch):
    given = []
    run = type(scorer.pass_engine).run

    def watch(self, inputs, outputs):
        if "logits" in outputs:
            given.append(inputs["outcome_vectors"][:, :, 0])
        return run(self, inputs, outputs)

    monkeypatch.setattr(type(scorer.pass_engine), "run", watch)
    near = f"{TWO} bank card bank card"
    scorer.score([RenderedRequest(f"{near}. {ONE}", (TEAM,))])
    scorer.score([RenderedRequest(f"{ONE}. {near}. {THREE} {THREE}. {THREE}", (TEAM,))])
    alone, surrounded = (one[0, :3] for one in given)
    vectors = scorer.embed([f"{near}.", f"{ONE}", *("bank Card", "B) river", "cold water: late")])
    sentences, outcomes = vectors[:2], vectors[2:]
    of_sentences = outcomes @ sentences.T
    for found in (alone, surrounded):
        assert (found >= of_sentences.max(axis=1) - 1e-2).all()
    # The mean of the sentences is compared too, and nothing else in the first request.
    mean = sentences.sum(axis=0)
    of_mean = outcomes @ (mean / np.linalg.norm(mean))
    np.testing.assert_allclose(alone, np.maximum(of_sentences.max(axis=1), of_mean), atol=1e-2)


def test_quoted_mail_and_markup_are_not_read(scorer):
    mail = RenderedRequest(f"<p>{ONE}. <b>{TWO}.</b></p>", (TEAM, OPEN))
    plain = RenderedRequest(f"{ONE}. {TWO}.", (TEAM, OPEN))
    for read, same in zip(*scorer.score([mail, plain]), strict=True):
        np.testing.assert_allclose(read.logits, same.logits, atol=1e-5)


def test_a_context_in_another_language_is_unread(scorer):
    pytest.importorskip("pycld2")
    german = RenderedRequest("Ich möchte bitte mein Geld zurück, sie ist kaputt.", (OPEN,))
    english = RenderedRequest(ONE, (OPEN,))
    [[unread], [plain]] = scorer.score([german, english])
    assert (unread.is_unread, plain.is_unread) == (True, False)
