"""Fine-tunes on a base model of another server: asked about the rows once, and about each request."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import contextmanager

import pytest

from jobs.workers import kill, start_job_worker
from steelyard import patience
from steelyard.app.job_runtime import open_worker
from steelyard.client import Client, ClientOptions
from steelyard.errors import EngineUnavailableError, InvalidRequestError, ModelUnavailableError
from steelyard.families.fine_tuning.asking import _AT_ONCE
from steelyard.serving.connected.declared import ConnectedModel, write_models
from support.families.learnable_rows import WORDS, learnable_rows, one_request
from support.models.remote_models import remote_model
from support.servers.live_server import live_server
from support.waiting import wait_until

BILLING = {word for batch in WORDS for word in batch[0]}
#: The largest share of billing that it says: a base that is right, and not sure.
SURE = 0.7


def team_answer(path, body):
    """Answer as a chat server that knows billing by its words."""
    asked = body["messages"][-1]["content"]
    is_billing = any(word in asked for word in BILLING)
    shares = (SURE, 1 - SURE) if is_billing else (1 - SURE, SURE)
    top = [
        {"token": f" {token}", "logprob": math.log(one)}
        for token, one in zip("AB", shares, strict=True)
    ]
    return {"choices": [{"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]}


@contextmanager
def connected(home, far):
    """A server whose model ``far`` is elsewhere, and its client."""
    write_models(home, {"far": ConnectedModel(wire="chat", url=far.url, timeout_s=5)})
    with (
        live_server(home=str(home), jobs="off") as server,
        Client(ClientOptions(url=server.url, max_retries=0)) as client,
    ):
        yield server, client


def make_dataset(client, n_rows=80):
    rows = learnable_rows(n_rows=n_rows)
    return client.datasets.create("rows", training=rows, evaluation=learnable_rows(1, n_rows))


def asked_contexts(far):
    """How often each context was asked."""
    found = Counter()
    for _, body in far.asked:
        asked = body["messages"][-1]["content"]
        found[asked.partition("<text>\n")[2].partition("\n</text>")[0]] += 1
    return found


@pytest.mark.slow
def test_it_is_trained_judged_and_called_with_its_base_elsewhere(tmp_path):
    home = tmp_path / "home"
    with remote_model(team_answer) as far, connected(home, far) as (server, client):
        dataset = make_dataset(client)
        with open_worker(server.services.settings):
            job = client.families.create("router", dataset.id, start_from="far")
            ended = client.jobs.wait(job, poll_s=0.1, progress=False)
        assert (ended.status, ended.outcome) == ("succeeded", "joined"), ended
        assert asked_contexts(far) == Counter(
            {row["context"]: 1 for b in (0, 1) for row in learnable_rows(b, 80)}
        )
        # The words of the evaluation rows are in no training row: what is right there is the base's.
        assert ended.dataset_evaluation.metrics.accuracy == 1

        client.families.wait("router", ended, poll_s=0.1, progress=False)
        far.asked.clear()
        answer = client.decide(**one_request(1), model="router")
        assert answer.decisions["team"].action == "billing"
        assert len(far.asked) == 1

        # Another calibration or address is the same base; without it nobody answers.
        far.fault = "status 500"
        with pytest.raises(EngineUnavailableError):
            client.decide(**one_request(1), model="router", fallback="none")
        assert client.decide(**one_request(1), model="router").fallback.to == "hashing"
        write_models(home, {})
        wait_until(lambda: "far" not in [one.id for one in client.models.list().data])
        with pytest.raises(ModelUnavailableError, match="far"):
            client.decide(**one_request(1), model="router", fallback="none")


@pytest.mark.parametrize("fault", ["status 500", "status 429"])
def test_a_base_that_fails_ends_the_fine_tune(tmp_path, monkeypatch, fault):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    with remote_model(team_answer, fault) as far, connected(tmp_path, far) as (server, client):
        dataset = make_dataset(client, 20)
        with open_worker(server.services.settings):
            job = client.families.create("router", dataset.id, start_from="far")
            ended = client.jobs.wait(job, poll_s=0.1, progress=False)
        assert (ended.status, ended.error.code) == ("failed", "engine_unavailable"), ended
        assert fault in ended.error.message


@pytest.mark.slow
def test_a_killed_worker_asks_nothing_again_that_was_answered(tmp_path):
    home = tmp_path / "home"
    with remote_model(team_answer) as far, connected(home, far) as (_, client):
        dataset = make_dataset(client)
        job = client.families.create("router", dataset.id, start_from="far")
        worker = start_job_worker(home)
        wait_until(lambda: len(far.asked) >= 60)
        kill(worker)
        worker = start_job_worker(home)
        try:
            ended = client.jobs.wait(job, poll_s=0.1, progress=False)
        finally:
            kill(worker)
        assert (ended.status, ended.outcome) == ("succeeded", "joined"), ended
        asked = asked_contexts(far)
        assert len(asked) == 160
        assert sum(asked.values()) - len(asked) <= _AT_ONCE


def test_untrainable_requests_are_refused_at_once(tmp_path):
    with remote_model(team_answer) as far, connected(tmp_path / "home", far) as (_, client):
        dataset = make_dataset(client, 20)
        with pytest.raises(InvalidRequestError) as refused:
            client.families.create(
                "router", dataset.id, start_from="far", hyperparameters={"lora_rank": 8}
            )
        assert [one["path"] for one in refused.value.details] == [
            ["body", "hyperparameters", "lora_rank"]
        ]
        assert far.asked == []
