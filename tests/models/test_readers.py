"""A reader is downloaded by a server that runs, and the route auto asks it at once."""

from __future__ import annotations

import threading

import pytest

import steelyard
from steelyard.errors import NotFoundError
from steelyard.serving.connected.declarations import declared_in
from steelyard.serving.reader import download
from steelyard.serving.reader.catalogue import read_readers
from steelyard.settings import read_settings
from support.models.entailment_models import write_encoder
from support.servers.model_hub import model_hub
from support.waiting import wait_until

PATIENCE_S = 60
GRAPH = "onnx/model_qint8_arm64.onnx"
QUESTIONS = [
    {"id": "happy", "kind": "binary", "question": "Is the customer happy?"},
    {
        "id": "careful",
        "kind": "binary",
        "question": "Is the customer furious?",
        "policy": {"abstain_unstated": 0.4},
    },
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = write_encoder(tmp_path_factory.mktemp("encoder"))
    files = {name: (folder / name).read_bytes() for name in ("tokenizer.json", "config.json")}
    files[GRAPH] = (folder / "model.onnx").read_bytes()
    with model_hub({read_readers()["reader"].repository: files}) as hub:
        yield hub


@pytest.fixture(scope="module")
def server(hub, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with steelyard.embed(home, engine="hashing", jobs="off", model_hub=hub.url) as server:
        yield server


@pytest.fixture(autouse=True)
def arm(monkeypatch):
    monkeypatch.setattr(download, "processor", lambda: "arm64")


def settled(server):
    def find():
        [reader] = [each for each in server.client.judges.list().data if each.name == "reader"]
        return reader if reader.task is None or reader.task.status != "running" else None

    wait_until(find, PATIENCE_S)
    return find()


def test_a_download_is_stopped_and_gone_on_with(server, hub, monkeypatch):
    judges = server.client.judges
    with pytest.raises(NotFoundError, match="No judge"):
        judges.stop("nothing")
    reached, stopped = threading.Event(), threading.Event()

    def slow(*given, on_bytes, **options):
        reached.set()
        stopped.wait(PATIENCE_S)
        on_bytes(1)

    monkeypatch.setattr("steelyard.models.judge_setup.pull_reader", slow)
    begun = judges.download("reader")
    assert (begun.kind, begun.downloaded, begun.connected) == ("reader", False, False)
    assert reached.wait(PATIENCE_S)
    judges.stop("reader")
    stopped.set()
    reader = settled(server)
    assert reader.task.error == "Stopped. What was done so far stays; start it again."
    assert judges.stop("reader").task == reader.task
    monkeypatch.undo()
    monkeypatch.setattr(download, "processor", lambda: "arm64")
    judges.download("reader")
    reader = settled(server)
    assert reader.task.error is None
    assert reader.task.done == reader.task.total > 1000
    assert (reader.downloaded, reader.connected, reader.wire) == (True, True, "entailment")
    assert reader.routes == ["auto"]
    declared = declared_in(read_settings({"home": server.home}, environ={}))
    assert (list(declared.models), list(declared.routes)) == (["reader"], [])


def test_the_route_auto_asks_it_for_a_yes_no(server):
    server.client.judges.download("reader")
    settled(server)
    wait_until(
        lambda: "auto" in [model.id for model in server.client.models.list().data], PATIENCE_S
    )
    answer = server.client.decide("The customer is happy.", QUESTIONS, model="auto")
    happy, careful = (answer.decisions[question["id"]] for question in QUESTIONS)
    assert [step.model for step in happy.route] == ["hashing", "reader"]
    assert (happy.top, careful.top, careful.action) == ("yes", "no", "no")
    silent = server.client.decide("A parcel came.", QUESTIONS, model="auto").decisions["careful"]
    assert silent.unstated > 0.4
    assert silent.action == "abstain"
    long = server.client.decide("A parcel came. " * 60, QUESTIONS, model="reader")
    assert "parts" in long.decisions["happy"].doubt


def test_figures_of_live_decisions_have_the_unstated_rate(server):
    server.client.judges.download("reader")
    settled(server)
    wait_until(
        lambda: "reader" in [model.id for model in server.client.models.list().data], PATIENCE_S
    )
    rate = server.client.decision_summary(model="reader").unstated_rate
    n_before, unstated = (rate.n, rate.value * rate.n) if rate is not None else (0, 0)
    for context in ("The customer is happy.", "A parcel came."):
        for model in ("reader", "hashing"):
            server.client.decide(context, QUESTIONS[:1], model=model, store=True)
    rate = server.client.decision_summary(model="reader").unstated_rate
    assert (rate.n, rate.value * rate.n) == pytest.approx((n_before + 2, unstated + 1))
    assert server.client.decision_summary(model="hashing").unstated_rate is None


def test_a_reader_is_checked(server):
    server.client.judges.download("reader")
    settled(server)
    server.client.judges.check("reader")
    assert settled(server).check.answered == 32
