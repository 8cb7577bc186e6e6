"""Every wire returns the server's answer, for any request."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from steelyard.cli.connected_models import _show_check
from steelyard.decisions.kinds import BINARY_NAMES, Decision, Outcomes
from steelyard.decisions.rendering import RenderedRequest, render_decision
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.hashing import HashingScorer
from steelyard.serving.connected.answers import UnusableAnswerError, checked, normalized
from steelyard.serving.connected.chat import read_top
from steelyard.serving.connected.checking import check_model
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.connected.queue import Loop, _scored
from steelyard.serving.connected_hosting import open_queue, wire_of
from support.decisions.factories import make_service
from support.models.exported_models import write_exported
from support.models.remote_models import (
    chat_answer,
    remote_model,
    share_of,
    switchable_answer,
    thinking_answer,
)
from support.servers.live_server import live_server

#: Seconds that no answer here takes.
PATIENCE_S = 30
LEVELS = ("low", "middle", "high")


@pytest.fixture(scope="module")
def steelyard():
    with live_server() as server:
        yield server


@pytest.fixture(scope="module")
def chat():
    with remote_model() as model:
        yield model


@pytest.fixture(scope="module")
def loop():
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    for kind in KINDS:
        write_exported(home / kind, kind)
    return home


@pytest.fixture
def open_chat(chat, loop):
    """Return a function that opens a queue to the chat server."""
    queues = []

    def open_():
        model = ConnectedModel(wire="chat", url=chat.url)
        queues.append(open_queue("far", model, loop, home=Path(), max_queue=64))
        return queues[-1]

    yield open_
    for queue in queues:
        queue.close()


@pytest.fixture
def ask(steelyard, chat, loop, home):
    """Return a function that asks a request over a wire."""
    queues = []

    def ask(wire, request, **given):
        chat.asked.clear()
        if wire in KINDS:
            model = ConnectedModel(wire="hub", folder=wire)
        else:
            url = chat.url if wire == "chat" else steelyard.url
            model = ConnectedModel(wire=wire, url=url, model="hashing", **given)
        queue = open_queue("far", model, loop, home=home, max_queue=8)
        queues.append(queue)
        scored = queue.submit(request, PATIENCE_S).result(PATIENCE_S)
        ask.n_requests = queue.remote.n_requests
        assert len(scored) == len(request.decisions)
        for one, decision in zip(scored, request.decisions, strict=True):
            assert one.logits.shape == (len(decision.outcomes),)
            assert np.exp(one.logits).sum() == pytest.approx(1, abs=1e-5)
        return [np.exp(one.logits) for one in scored]

    yield ask
    for queue in queues:
        queue.close()


def decision(kind, names, descriptions=None, question="What is it?"):
    texts = descriptions or (None,) * len(names)
    return render_decision(Decision("d", kind, question, Outcomes(tuple(names), tuple(texts))))


ASKED = {
    "binary": decision("binary", BINARY_NAMES),
    "binary, described": decision("binary", BINARY_NAMES, ("it is", "it is not")),
    "single": decision("single", ("refund", "exchange", "a: b")),
    "single, described": decision("single", ("refund", "exchange"), ("money back", None)),
    "ordinal": decision("ordinal", LEVELS),
    "ordinal, described": decision("ordinal", LEVELS, ("at most 1", "2", "3 or more")),
    "many levels": decision("ordinal", [f"level {n}" for n in range(12)]),
    "many outcomes": decision("single", [f"outcome {n}" for n in range(60)]),
}
#: Those of exported models, each over the wire ``hub``.
KINDS = ["similarity", "relevance", "entailment"]
WIRES = ["systemone", "decisions", "decide", "chat", *KINDS]


@pytest.mark.parametrize("wire", ["systemone", "decisions", "decide", "chat"])
@pytest.mark.parametrize("asked", [ASKED["binary, described"], ASKED["single"], ASKED["ordinal"]])
def test_a_guideline_is_sent_where_there_is_one(wire, asked):
    def body_of(asked):
        sent = []

        async def post(_, body):
            sent.append(body)
            raise UnusableAnswerError("")

        scoring = wire_of("far", ConnectedModel(wire=wire, url="http://far")).score
        with pytest.raises(UnusableAnswerError):
            asyncio.run(scoring(RenderedRequest("x", (asked,)), post))
        return json.dumps(sent)

    assert "Guide him." in body_of(replace(asked, guideline="Guide him."))
    assert "guid" not in body_of(asked).lower()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_an_answer_has_every_outcome_in_its_place(ask, wire, asked):
    request = RenderedRequest("Invoice 118 was paid twice.", (asked,))
    [found] = ask(wire, request)
    names = asked.names
    if wire == "decide":
        [expected] = HashingScorer().score([request])
        shares = np.exp(expected[0].logits - expected[0].logits.max())
        assert found == pytest.approx(shares / shares.sum(), abs=1e-4)
    order = [*range(1, len(names)), 0]
    if asked.kind == "single" and len(names) <= 20 and wire != "chat":
        turned = decision("single", [names[n] for n in order])
        plain = decision("single", names)
        [first] = ask(wire, RenderedRequest("x", (plain,)))
        [second] = ask(wire, RenderedRequest("x", (turned,)))
        assert second == pytest.approx(first[order], abs=1e-4)


@pytest.mark.parametrize("wire", WIRES)
def test_many_decisions_on_one_context_are_as_few_requests_as_the_wire_allows(ask, wire):
    decisions = tuple(decision("single", ("a", "b"), question=f"Which, {n}?") for n in range(64))
    together = ask(wire, RenderedRequest("Some text.", decisions))
    assert ask.n_requests == (64 if wire == "chat" else 1)
    [alone] = ask(wire, RenderedRequest("Some text.", decisions[7:8]))
    assert together[7] == pytest.approx(alone, abs=1e-5)


class TestChat:
    """Behaviour of the wire ``chat`` alone."""

    def test_the_context_comes_first_and_is_the_same_for_every_decision(self, ask, chat):
        ask("chat", RenderedRequest("A long text.", tuple(ASKED.values())[:4]))
        prompts = [body["messages"][-1]["content"] for _, body in chat.asked]
        assert len({prompt.partition("</text>")[0] for prompt in prompts}) == 1
        assert all(prompt.startswith("<text>\nA long text.\n</text>") for prompt in prompts)

    def test_rotations_undo_the_effect_of_the_place(self, ask):
        names = ("refund", "exchange", "other")
        request = RenderedRequest("x", (decision("single", names),))
        turned = RenderedRequest("x", (decision("single", ("exchange", "other", "refund")),))
        [once], [once_turned] = ask("chat", request), ask("chat", turned)
        assert once_turned[[2, 0, 1]] != pytest.approx(once, abs=0.02)
        [found] = ask("chat", request, permutations=3)
        [found_turned] = ask("chat", turned, permutations=3)
        assert found_turned[[2, 0, 1]] == pytest.approx(found, abs=1e-5)

    def test_a_tournament_finds_the_best_of_many(self, ask, chat, monkeypatch):
        monkeypatch.setattr(chat, "answer", partial(chat_answer, bias=1.0))
        names = [f"outcome {n}" for n in range(255)]
        request = RenderedRequest("x", (decision("single", names),))
        [found] = ask("chat", request, permutations=1)
        assert len(chat.asked) == 14
        assert names[int(found.argmax())] == max(names, key=share_of)

    @pytest.mark.parametrize(
        ("asked", "labels"),
        [("binary", ["Yes", "No"]), ("ordinal", ["1", "2", "3"]), ("single", ["A", "B", "C"])],
    )
    def test_each_kind_has_tokens_of_its_own(self, ask, chat, asked, labels):
        ask("chat", RenderedRequest("x", (ASKED[asked],)))
        last = chat.asked[-1][1]["messages"][-1]["content"].splitlines()[-1]
        assert last == f"Answer with one of {', '.join(labels)}."

    def test_spellings_are_added_and_missing_outcomes_get_the_rest(self):
        shares = {" a": 0.4, "A": 0.2, "(B)": 0.2, "The": 0.1}
        top = [{"token": token, "logprob": float(np.log(p))} for token, p in shares.items()]
        found = read_top(["A", "B", "C", "D"], top)
        assert found.shares == pytest.approx(np.array([0.6, 0.2, 0.05, 0.05]) / 0.9)
        assert found.mass == pytest.approx(0.8)

    def test_thinking_is_switched_off_where_it_can_be(self, ask, chat, monkeypatch):
        request = RenderedRequest("x", (ASKED["single"], ASKED["binary, described"]))
        expected = ask("chat", request)
        monkeypatch.setattr(chat, "answer", switchable_answer)
        found = ask("chat", request)
        assert [shares.tolist() for shares in found] == [shares.tolist() for shares in expected]
        # Once it was seen to help, nothing is asked twice.
        assert len(chat.asked) == 3

    def test_fewer_log_probabilities_are_asked_for_after_a_refusal(self, ask, chat, monkeypatch):
        request = RenderedRequest("x", (ASKED["single"], ASKED["binary"]))
        expected = ask("chat", request)

        def bounded(path, body):
            if body["top_logprobs"] > 5:
                return 400, {"error": {"message": "top_logprobs must be between 0 and 5"}}
            return chat_answer(path, body)

        monkeypatch.setattr(chat, "answer", bounded)
        found = ask("chat", request)
        assert [shares.tolist() for shares in found] == [shares.tolist() for shares in expected]
        assert [body["top_logprobs"] for _, body in chat.asked] == [20, 5, 5]

    @pytest.mark.parametrize("n_outcomes", [2, 3, 60])
    @pytest.mark.parametrize(
        "answer",
        [
            thinking_answer,
            partial(thinking_answer, mass=0.09),
            lambda path, body: (
                (400, {}) if "chat_template_kwargs" in body else thinking_answer(path, body)
            ),
        ],
        ids=["stays", "likelier", "refuses the switch"],
    )
    def test_shares_of_other_tokens_are_no_answer(self, ask, chat, monkeypatch, answer, n_outcomes):
        monkeypatch.setattr(chat, "answer", answer)
        asked = decision("single", [f"outcome {n}" for n in range(n_outcomes)])
        with pytest.raises(EngineUnavailableError, match="lies on the labels"):
            ask("chat", RenderedRequest("x", (asked,)))

    @pytest.mark.parametrize("logprobs", [None, {"content": None}, {"content": []}])
    def test_an_answer_without_log_probabilities_says_so(self, ask, chat, monkeypatch, logprobs):
        choice = {"message": {"role": "assistant", "content": "A"}, "logprobs": logprobs}
        monkeypatch.setattr(chat, "answer", lambda *_: {"choices": [choice]})
        asked = decision("single", ["a", "b"])
        with pytest.raises(EngineUnavailableError, match="it has no log probabilities"):
            ask("chat", RenderedRequest("x", (asked,)))

    def test_a_check_measures_the_share_on_labels(self, open_chat, chat, monkeypatch, capsys):
        for answer, mass, answered in (
            (chat_answer, 0.9, 32),
            (partial(thinking_answer, mass=0.4), 0.36, 32),
            (thinking_answer, None, 0),
        ):
            monkeypatch.setattr(chat, "answer", answer)
            queue = open_chat()
            report = check_model(queue.submit, PATIENCE_S)
            assert report.answered == answered
            assert report.share_on_outcomes == (mass and pytest.approx(mass, abs=0.01))
            _show_check(report)
            said = "Only 36% of the probability" in capsys.readouterr().err
            assert said == (mass is not None and mass < 0.5)
            if mass is not None:
                request = RenderedRequest("x", (ASKED["single"],))
                assert bool(queue.submit(request, PATIENCE_S).result()[0].doubt) == said
        refusal = (400, {"error": {"message": "This model has no logprobs."}})
        monkeypatch.setattr(chat, "answer", lambda *_: refusal)
        [failure] = check_model(open_chat().submit, PATIENCE_S).failures
        assert failure.endswith("with status 400. It says: This model has no logprobs.")

    def test_the_name_that_a_server_gives_its_model(self, open_chat, chat, monkeypatch):
        queue = open_chat()
        assert queue.remote.provider_model == ""
        for name in ("far-1101", "far-1130"):
            monkeypatch.setattr(
                chat, "answer", lambda *sent, name=name: {**chat_answer(*sent), "model": name}
            )
            check_model(queue.submit, PATIENCE_S)
            assert queue.remote.provider_model == name

    @pytest.mark.parametrize(
        "top",
        [[], None, [{"token": "The", "logprob": -0.1}], [{"token": "A", "logprob": "x"}], [{}]],
    )
    def test_answers_without_an_option_are_refused(self, top):
        with pytest.raises(EngineUnavailableError, match="cannot be used"):
            read_top(["A", "B"], top)


@pytest.mark.parametrize(
    "found",
    [
        {"a": 0.5},
        {"a": 0.5, "b": float("nan")},
        {"a": 0.5, "b": 0.502},
        {"a": -0.1, "b": 1.1},
        {"a": True, "b": 0.0},
        {"a": "0.5", "b": 0.5},
        [0.5, 0.5],
        None,
    ],
)
def test_an_invalid_distribution_is_no_answer(found):
    with pytest.raises(EngineUnavailableError, match="cannot be used"):
        checked(["a", "b"], found)


def test_another_order_and_more_outcomes_are_read_by_name():
    assert checked(["a", "b"], {"b": 0.25, "a": 0.75}) == pytest.approx([0.75, 0.25])


def test_a_decimal_of_the_other_server_is_the_same_here():
    service = make_service()
    for yes in (0.9, 0.07, 0.123):
        score = _scored(normalized([yes, 1 - yes]), 2)
        assert service.calibrated("binary", 2, score)[0] == yes
