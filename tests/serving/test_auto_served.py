"""The route ``auto`` of a server over the base and the reader that ship, and a judge elsewhere."""

from __future__ import annotations

import pytest

import steelyard
from steelyard.errors import NotFoundError
from steelyard.scoring.shipped import BASE
from steelyard.serving import auto
from steelyard.serving.auto import JUDGE, ROUTE
from steelyard.serving.connected.declared import ConnectedModel, ModelsFile, write_file
from steelyard.serving.reader.catalogue import SHIPPED
from support.models.remote_models import remote_model
from support.waiting import wait_until

PATIENCE_S = 20
TEXT = "My card was charged twice for order 118. Please send one payment back today."
TEAMS = {
    "billing": "charges, invoices and refunds",
    "shipping": "where a parcel is",
    "technical": "the product does not work",
}
COLOURS = ["red", "blue", "green", "pink", "white", "black", "brown", "grey"]
DECISIONS = [
    {"id": "sure", "question": "Which team should own this ticket?", "outcomes": TEAMS},
    {"id": "yes_no", "kind": "binary", "question": "Was the card charged twice?"},
    {"id": "unsure", "question": "Which colour is the wall?", "outcomes": COLOURS},
]


@pytest.fixture(scope="module")
def judge():
    with remote_model() as judge:
        yield judge


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home):
    with steelyard.embed(home, engine="onnxruntime-float32", jobs="off") as server:
        yield server


def routes(server):
    try:
        answer = server.client.decide(TEXT, DECISIONS, model=ROUTE, fallback="none")
    except NotFoundError:
        return None
    return [
        tuple(entry.model for entry in answer.decisions[sent["id"]].route) for sent in DECISIONS
    ]


@pytest.mark.parametrize(
    ("has_reader", "has_judge", "expected"),
    [
        (True, True, [(BASE.name,), (BASE.name, SHIPPED), (BASE.name, SHIPPED, JUDGE)]),
        (True, False, [(BASE.name,), (BASE.name, SHIPPED), (BASE.name,)]),
        (False, True, [(BASE.name,), (BASE.name, JUDGE), (BASE.name, JUDGE)]),
        (False, False, None),
    ],
)
def test_each_decision_is_answered_by_the_first_model_that_is_sure(
    server, home, judge, monkeypatch, has_reader, has_judge, expected
):
    monkeypatch.setattr(auto, "has_bundled", lambda: has_reader)
    models = {JUDGE: ConnectedModel(wire="chat", url=judge.url)} if has_judge else {}
    # A judge that is connected alone gets its route by the setting, or by a page of the workbench.
    is_alone = has_judge and not has_reader
    of_judge = {ROUTE: auto.auto_route(BASE.name, None, JUDGE)} if is_alone else {}
    write_file(home, ModelsFile(models, of_judge))
    wait_until(lambda: routes(server) == expected, PATIENCE_S, last=lambda: routes(server))
    judge.asked.clear()
    assert routes(server) == expected
    assert bool(judge.asked) is has_judge


def test_the_answer_of_a_yes_no_weighs_both_models_and_says_how_far_the_text_tells(
    server, home, monkeypatch
):
    monkeypatch.setattr(auto, "has_bundled", lambda: True)
    other = ConnectedModel(wire="chat", url="http://127.0.0.1:9")
    write_file(
        home, ModelsFile({"other": other})
    )  # what is there is opened anew after a change alone
    wait_until(lambda: routes(server) is not None, PATIENCE_S)
    by_model = {
        model: server.client.decide(TEXT, DECISIONS[1:2], model=model).decisions["yes_no"]
        for model in (BASE.name, SHIPPED, ROUTE)
    }
    assert by_model[ROUTE].top == "yes"
    assert by_model[ROUTE].p_top > by_model[BASE.name].p_top
    assert by_model[ROUTE].unstated == by_model[SHIPPED].unstated
