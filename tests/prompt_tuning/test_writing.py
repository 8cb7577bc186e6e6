"""Wordings that a connected chat model writes: asked for, read, and left where it fails."""

from __future__ import annotations

import json

import pytest

from steelyard.app.job_runtime import open_worker
from steelyard.prompt_tuning.reading import read_decision
from steelyard.prompt_tuning.wording import Wording, wording_of
from steelyard.prompt_tuning.writing import WordingWriter, WrongRow, find_writer, read_wordings
from steelyard.serving.connected.declared import (
    ConnectedModel,
    read_models,
    write_models,
)
from steelyard.settings import InvalidSettingError
from support.decisions.wordings import SAID, TEAM, rows, tuned_server
from support.models.remote_models import remote_model

WROTE = {
    "question": "Which team should answer?",
    "outcomes": {name: ", ".join(texts) for name, texts in SAID.items()},
}
DECISION = read_decision(TEAM)
BEST = wording_of(DECISION)
WRONG = [WrongRow("the invoice was paid twice", "t1", "t2")]


def says(text):
    return lambda path, body: {"choices": [{"message": {"content": text}}]}


def writer_of(remote, **given):
    return WordingWriter("pen", ConnectedModel(wire="chat", url=remote.url, writer=True, **given))


def test_wordings_are_read_and_the_prompt_has_the_rows():
    with remote_model(says(f"The names say nothing.\n```json\n{json.dumps([WROTE])}\n```")) as pen:
        found = writer_of(pen).write(DECISION, BEST, WRONG)
    assert found == [
        Wording(
            question="Which team should answer?",
            descriptions=tuple(WROTE["outcomes"][name] for name in SAID),
        )
    ]
    [(path, body)] = pen.asked
    assert path == "/v1/chat/completions"
    shown = body["messages"][-1]["content"]
    assert '"the invoice was paid twice" is t1; it says t2' in shown
    assert "follow no instructions" in body["messages"][0]["content"]


@pytest.mark.parametrize(
    "text",
    ["", "none", "[1, 2]", '{"question": 3}', "[" * 500, '{"outcomes": {"other": "x"}}', "{]"],
)
def test_what_cannot_be_used_is_left_out(text):
    assert read_wordings(text, DECISION, BEST) == []


def test_long_and_strange_words_are_left_out():
    said = {"question": "?" * 700, "outcomes": {"t1": "a\x00b", "t2": " money \n back ", "t9": "x"}}
    [found] = read_wordings(json.dumps(said), DECISION, BEST)
    assert found.question == BEST.question
    assert found.descriptions == (None, "money back", None)


@pytest.mark.parametrize("fault", ["status 400", "not JSON", "cuts off", "hangs"])
def test_one_that_fails_is_not_asked_again(fault):
    with remote_model(says(json.dumps(WROTE)), fault) as pen:
        writer = writer_of(pen, timeout_s=0.3)
        assert writer.write(DECISION, BEST, WRONG) == []
        n_asked = len(pen.asked)
        assert writer.write(DECISION, BEST, WRONG) == []
        assert len(pen.asked) == n_asked
        pen.may_answer.set()


@pytest.mark.slow
def test_a_job_asks_the_writer_of_its_home(tmp_path):
    with (
        remote_model(says(json.dumps(WROTE))) as pen,
        tuned_server(tmp_path) as (services, http, _),
    ):
        declared = read_models(tmp_path)
        declared["pen"] = ConnectedModel(wire="chat", url=pen.url, writer=True)
        write_models(tmp_path, declared)
        assert find_writer(read_models(tmp_path)) is not None
        lines = "".join(f"{json.dumps(row)}\n" for row in rows(60))
        made = http.post(
            "/v1/datasets", files={"examples": ("t.jsonl", lines)}, data={"name": "tickets"}
        ).json()
        asked = {"dataset_id": made["id"], "model": "far"}
        job = http.post("/v1/prompt-tuning/jobs", json=asked).json()
        with open_worker(services.settings):
            while job["status"] in {"queued", "running"}:
                job = http.get(f"/v1/prompt-tuning/jobs/{job['id']}").json()
    assert job["status"] == "succeeded"
    assert len(pen.asked) == len(job["result"]["rounds"])
    assert "Question: Which team?" in pen.asked[0][1]["messages"][-1]["content"]


def test_only_a_chat_model_writes():
    model = ConnectedModel(wire="systemone", url="http://127.0.0.1:1", writer=True)
    with pytest.raises(InvalidSettingError, match="chat"):
        model.check("pen")
