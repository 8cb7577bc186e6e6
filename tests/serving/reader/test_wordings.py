"""A judge writes the statements of a question that grammar declines, once for each wording."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.serving.connected.declared import ConnectedModel, write_models
from steelyard.serving.reader import wordings as module
from steelyard.serving.reader.declaring import reader_model
from steelyard.serving.reader.wordings import FILE, Wordings, read_written
from support.models.entailment_models import write_encoder
from support.models.remote_models import remote_model
from support.servers.live_server import live_server

QUESTION = "Is it praise or a complaint?"
WRITTEN = "Yes: The text is praise.\nNo: The text is a complaint."


def yes_no(question, **fields):
    return RenderedDecision("binary", question, ("yes", "no"), **fields)


def complete(wordings, *decisions):
    request = RenderedRequest("It broke.", decisions)
    completed = asyncio.run(wordings.complete(request))
    return [(each.statement, each.opposite) for each in completed.decisions]


@pytest.fixture
def written(tmp_path):
    prompts = []

    def open_wordings(text=WRITTEN):
        async def write(messages, _):
            prompts.append(messages[-1]["content"])
            if isinstance(text, Exception):
                raise text
            return text

        return Wordings(tmp_path, write)

    return open_wordings, prompts


def test_a_wording_is_written_once_and_outlasts_the_process(written):
    open_wordings, prompts = written
    wordings = open_wordings()
    pair = ("The text is praise.", "The text is a complaint.")
    decisions = [yes_no(QUESTION), yes_no(f"  {QUESTION} "), yes_no("Is it late?")]
    assert complete(wordings, *decisions) == [pair, pair, ("", "")]
    assert len(prompts) == 1
    assert QUESTION in prompts[0]
    assert complete(wordings, yes_no(QUESTION, opposite="Is it bad?")) == [(pair[0], "Is it bad?")]
    assert complete(open_wordings(), yes_no(QUESTION)) == [pair]
    choice = RenderedDecision("single", "Which?", ("a", "b"))
    assert complete(wordings, yes_no(QUESTION, statement="Mine."), choice) == [
        ("Mine.", ""),
        ("", ""),
    ]
    assert len(prompts) == 1


def test_a_question_without_yes_and_no_stays_as_typed_and_is_not_asked_again(written):
    open_wordings, prompts = written
    assert complete(open_wordings("NONE"), yes_no(QUESTION)) == [("", "")]
    assert complete(open_wordings("NONE"), yes_no(QUESTION)) == [("", "")]
    assert len(prompts) == 1


@pytest.mark.parametrize("text", [EngineUnavailableError("It is away."), TimeoutError(), None])
def test_a_judge_that_fails_or_is_not_there_leaves_the_question_as_typed(written, tmp_path, text):
    open_wordings, prompts = written
    wordings = open_wordings(text)
    for _ in range(2):
        assert complete(wordings, yes_no(QUESTION)) == [("", "")]
    assert len(prompts) == (2 if text is None else 1)
    assert not (tmp_path / FILE).exists()


def test_a_request_waits_once_for_all_its_questions(tmp_path, monkeypatch):
    decisions = [yes_no(f"Is it praise or complaint {number}?") for number in range(6)]

    async def ask():
        asked, together = [], asyncio.Barrier(4)

        async def write(messages, _):
            asked.append(messages)
            if len(asked) <= 4:
                await together.wait()
            return WRITTEN

        wordings = Wordings(tmp_path, write)
        completed = await wordings.complete(RenderedRequest("It broke.", tuple(decisions)))
        assert all(decision.statement for decision in completed.decisions)
        assert len(asked) == 6

    asyncio.run(ask())

    async def give_up():
        asked = []

        async def never(messages, _):
            asked.append(messages)
            await asyncio.Event().wait()

        monkeypatch.setattr(module, "_PATIENCE_S", 0.001)
        request = RenderedRequest("It broke.", tuple(decisions))
        assert await Wordings(tmp_path / "other", never).complete(request) == request
        assert len(asked) == 4

    asyncio.run(give_up())


@pytest.mark.parametrize(
    "text", ["", "Yes: A.", "No: B.\nYes: A.", "Yes: A.\nNo: a.", f"Yes: {'a' * 700}\nNo: B."]
)
def test_invalid_pairs_of_statements_are_not_taken(text):
    assert read_written(text) is None


def test_a_connected_chat_model_that_may_write_is_asked_by_a_server(tmp_path):
    def answer(path, body):
        assert path == "/v1/chat/completions"
        return {"choices": [{"message": {"content": WRITTEN}}]}

    home = tmp_path / "home"
    reader = reader_model(write_encoder(tmp_path / "nli"))
    decision = {"id": "d", "kind": "binary", "question": QUESTION}
    body = {"context": "It broke.", "decisions": [decision], "model": "nli", "explain": True}

    def ask():
        with live_server(home=str(home), jobs="off") as server:
            answers = [httpx.post(f"{server.url}/v1/decide", json=body, timeout=60) for _ in "12"]
            return [answer.json()["decisions"]["d"]["read_as"] for answer in answers]

    with remote_model(answer) as chat:
        may_not = ConnectedModel(wire="chat", url=chat.url)
        write_models(home, {"chat": may_not, "nli": reader})
        assert ask() == [None, None]
        assert chat.asked == []
        write_models(
            home, {"chat": ConnectedModel(wire="chat", url=chat.url, writer=True), "nli": reader}
        )
        pair = {"statement": "The text is praise.", "negation": "The text is a complaint."}
        assert ask() == [pair, pair]
        assert ask() == [pair, pair]
        assert len(chat.asked) == 1
