"""Explanations of an answer: the request without each sentence of its context."""

from __future__ import annotations

from decimal import Decimal

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

import steelyard
from steelyard import errors
from steelyard.app.deployment import open_deployment
from steelyard.decisions.explaining import MAX_PARTS, spans_of, without
from steelyard.scoring.batching import Batcher
from steelyard.settings import read_settings
from support.decisions.strategies import few
from support.servers.live_server import live_server

TEXT = "Hello, I am Ada. Invoice 118 was paid twice; please send the money back! Thank you."
DECISIONS = [
    {"id": "team", "question": "Who is it for?", "outcomes": ["billing", "shipping", "other"]},
    {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"},
]


@few
@given(st.text(alphabet="ab .!?\n\u3002", max_size=120))
def test_sentences_are_parts_of_the_text_in_its_order(text):
    spans = spans_of(text)
    assert len(spans) != 1
    assert len(spans) <= MAX_PARTS
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(text[start:stop].strip() == text[start:stop] != "" for start, stop in spans)
    left = "".join(text[start:stop] for start, stop in spans)
    assert not spans or "".join(left.split()) == "".join(text.split())


def test_neighbours_are_joined_where_there_are_many():
    text = " ".join(f"Sentence {n} of them." for n in range(20))
    spans = spans_of(text)
    assert len(spans) == MAX_PARTS
    assert {text[start:stop][-1] for start, stop in spans} == {"."}
    assert without("One. Two. Three.", (5, 9)) == "One. Three."


@pytest.fixture(scope="module")
def client():
    with (
        live_server(jobs="off", prices="hashing=7") as server,
        steelyard.connect(server.url) as connected,
    ):
        yield connected


@pytest.mark.usefixtures("every_response_is_checked")
def test_each_question_is_read_as_a_statement_and_its_negation(client):
    asked = {"kind": "binary", "question": "Does the writer ask for money back?"}
    decisions = [
        {"id": "team", "question": "Who is it for?", "outcomes": ["billing", "other"]},
        {"id": "refund", **asked},
        {"id": "own", **asked, "statement": "A refund is wanted."},
        {"id": "both", **asked, "statement": "Money!", "opposite": "Does the writer pay?"},
        {"id": "open", "kind": "binary", "question": "Is it praise or a complaint?"},
    ]
    answer = client.decide(TEXT, decisions, explain=True)
    read = {name: result.read_as for name, result in answer.decisions.items()}
    assert read["team"] is read["open"] is None
    pairs = {name: (item.statement, item.negation) for name, item in read.items() if item}
    assert pairs == {
        "refund": (
            "The writer asks for money back.",
            "The writer does not ask for money back.",
        ),
        "own": ("A refund is wanted.", "No refund is wanted."),
        "both": ("Money!", "The writer pays."),
    }
    plain = client.decide(TEXT, decisions)
    assert {result.read_as for result in plain.decisions.values()} == {UNSET}


def test_a_base_model_reads_no_guideline_and_charges_none(client):
    guided = [{**decision, "guideline": "Ask *Ann*.\n" * 500} for decision in DECISIONS]
    plain, answer = client.decide(TEXT, DECISIONS), client.decide(TEXT, guided)
    assert (answer.decisions, answer.usage) == (plain.decisions, plain.usage)


@pytest.mark.usefixtures("every_response_is_checked")
def test_it_equals_the_request_without_each_sentence(client):
    plain = client.decide(TEXT, DECISIONS)
    answer = client.decide(TEXT, DECISIONS, explain=True, store=True)
    assert {name: replace(result, read_as=UNSET) for name, result in answer.decisions.items()} == (
        plain.decisions
    )
    assert plain.explanation is UNSET
    tokens = plain.usage.input_tokens
    for name, effects in answer.explanation.items():
        assert [abs(effect.change) for effect in effects] == sorted(
            (abs(effect.change) for effect in effects), reverse=True
        )
        assert len(effects) == 3
        for effect in effects:
            assert TEXT[effect.start : effect.end] == effect.text
            less = client.decide(without(TEXT, (effect.start, effect.end)), DECISIONS)
            result, top = less.decisions[name], answer.decisions[name].top
            assert effect.top_without == result.top
            assert effect.change == pytest.approx(
                plain.decisions[name].p_top - result.probabilities[top], abs=1e-8
            )
            tokens += less.usage.input_tokens if name == "team" else 0
    assert answer.usage.input_tokens == tokens
    assert Decimal(answer.charge.amount_usd) == Decimal(7 * tokens) / 10**9
    estimate = client.estimate(TEXT, DECISIONS, explain=True)
    assert estimate.maximum_charge_usd == answer.charge.amount_usd
    stored = httpx.get(f"{client.url}/v1/decisions/log/{answer.id}")
    assert stored.status_code == 200
    assert "explanation" not in stored.text
    assert client.playground(TEXT, DECISIONS, explain=True).explanation == answer.explanation


def test_in_process_it_is_the_same():
    with open_deployment(read_settings({"engine": "hashing"}, environ={})) as deployment:
        request = {"context": TEXT, "decisions": DECISIONS}
        plain = deployment.answers.answer_dict(request)
        answer = deployment.answers.answer_dict({**request, "explain": True})
        less = deployment.answers.answer_dict({**request, "context": TEXT.partition(". ")[2]})
    [effect] = [one for one in answer["explanation"]["refund"] if one["start"] == 0]
    [before, after] = (one["decisions"]["refund"] for one in (plain, less))
    assert effect["change"] == pytest.approx(
        before["p_top"] - after["probabilities"][before["top"]], abs=1e-8
    )


def test_parts_do_not_wait_for_one_another(client, monkeypatch):
    futures, overlaps = [], []
    submit = Batcher.submit

    def submit_and_note(*args):
        overlaps.append(not all(future.done() for future in futures))
        futures.append(submit(*args))
        return futures[-1]

    monkeypatch.setattr(Batcher, "submit", submit_and_note)
    client.decide(TEXT, DECISIONS, explain=True)
    with open_deployment(read_settings({"engine": "hashing"}, environ={})) as deployment:
        deployment.answers.answer_dict({"context": TEXT, "decisions": DECISIONS, "explain": True})
    assert overlaps == [False] * 8


def test_one_sentence_has_none_and_other_contexts_are_refused(client):
    assert client.decide("It broke", DECISIONS, explain=True).explanation == {
        "team": [],
        "refund": [],
    }
    with pytest.raises(errors.InvalidRequestError, match="explain takes a context that is text"):
        client.decide({"text": TEXT}, DECISIONS, explain=True)
