"""``steelyard family distill``: a teacher's labels, a dataset, a family, and its stored parts."""

from __future__ import annotations

import json
import math

import pytest

from steelyard.app.job_runtime import open_worker
from steelyard.client import Client, ClientOptions
from steelyard.serving.connected.declared import ConnectedModel, write_models
from support.families.learnable_rows import WORDS, learnable_rows
from support.models.remote_models import remote_model
from support.servers.live_server import live_server

BILLING = {word for batch in WORDS for word in batch[0]}


def teach(path, body):
    """Answer as a chat server that knows billing by its words."""
    asked = body["messages"][-1]["content"]
    share = 0.9 if any(word in asked for word in BILLING) else 0.1
    top = [
        {"token": token, "logprob": math.log(one)}
        for token, one in (("A", share), ("B", 1 - share))
    ]
    return {"choices": [{"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with remote_model(teach) as far:
        declared = ConnectedModel(wire="chat", url=far.url, teacher=True, price_in="2")
        write_models(home, {"far": declared})
        with live_server(home=str(home), jobs="off", prices="hashing=1") as server:
            yield server


@pytest.fixture
def client(server):
    with Client(ClientOptions(url=server.url)) as client:
        yield client


@pytest.fixture
def ask(run, server):
    def run_command(*words: str, stdin: str | None = None):
        return run(*words, "--url", server.url, stdin=stdin)

    return run_command


@pytest.mark.slow
def test_from_a_teacher_to_a_family(ask, server, client, tmp_path):
    rows = [
        {"context": row["context"], "decisions": row["decisions"]}
        for row in learnable_rows(n_rows=150)
    ]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = ask("labeling", "upload", str(tmp_path / "queries.jsonl"), "--name", "queries", "--json")
    distill = ["family", "distill", "router", "--teacher", "far"]
    distill += ["--source", json.loads(made.stdout)[0]["id"]]

    refused = ask(*distill, "--max-price-usd", "0.000001")
    assert refused.exit_code == 1
    assert "left of --max-price-usd" in refused.stderr
    assert ask(*distill, stdin="n\n").exit_code == 1
    assert list(client.labeling.list()) == []

    with open_worker(server.services.settings):
        waiting = ask(*distill, "--yes", "--review-share", "0.02")
        assert waiting.exit_code == 0, waiting.output
        assert "The labeling costs 0." in waiting.stderr
        assert "3 rows wait for people" in waiting.stderr
        [labeling] = client.labeling.list()
        # The same command goes on with the labels that there are.
        done = ask(*distill, "--yes")
    assert done.exit_code == 0, done.output
    assert [one.id for one in client.labeling.list()] == [labeling.id]
    assert client.families.get("router").dataset_id == client.labeling.get(labeling.id).dataset_id
    assert "The fine-tune costs" in done.stderr
    assert "of its accuracy" in done.stdout
    assert "of its price" in done.stdout


def test_unusable_arguments_are_refused(ask):
    distill = ["family", "distill", "other", "--teacher", "far"]
    assert "Give --source or --from-log" in ask(*distill).stderr
    assert "is no time" in ask(*distill, "--from-log", "soon").stderr
    assert "No stored answer" in ask(*distill, "--from-log", "1h").stderr


def test_unsure_answers_are_queries(ask, client):
    for number in (1, 2, 2):
        asked = [{"id": "team", "question": "Which team?", "outcomes": ["billing", "other"]}]
        client.decide(f"ticket {number}", asked, store=True)
    assert (
        "No stored answer matches"
        in ask("labeling", "from-log", "--name", "unsure", "--unsure", "0.1").stderr
    )
    made = ask(
        "labeling", "from-log", "--name", "unsure", "--since", "1h", "--unsure", "1", "--json"
    )
    assert made.exit_code == 0, made.output
    [source] = json.loads(made.stdout)
    assert source["rows"] == 2  # what was asked twice is there once
