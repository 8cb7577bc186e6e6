"""The search over everything: its results, the latest answer alone, and opening one."""

from __future__ import annotations

import asyncio

import pytest

import steelyard
from steelyard.errors import SteelyardError

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.frame.finding import Finding, find_pages
from steelyard_workbench.frame.heading import Heading
from steelyard_workbench.kit.session import Session

ASKED = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
ROWS = [
    {
        "context": {"n": n, "said": "a parcel"} if n % 2 else f"invoice {n}",
        "decisions": [ASKED],
        "targets": {"team": {"billing": 1.0}},
    }
    for n in range(12)
]


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing") as running:
        yield running


@pytest.fixture(scope="module")
def dataset(server):
    return server.client.datasets.create("invoices of May", ROWS)


@pytest.fixture
def session(server, dataset):
    return Session(server.client)


def find(finding, text, n=1):
    asyncio.run(finding.find(text, n))
    return [(one["kind"], one["label"]) for one in finding.finder.answer["found"]]


def test_datasets_models_and_rows_are_found_and_bounded(session):
    finding = Finding(session)
    found = find(finding, "invoice")
    assert found[0] == ("dataset", "invoices of May")
    assert [kind for kind, _ in found].count("row") == 5
    assert find(finding, "hash") == [("model", "hashing")]
    assert find(finding, "parcel")[0] == ("row", '{"n":1,"said":"a parcel"}')
    assert find(finding, "nowhere at all") == []
    assert "No matches" in finding.finder.answer["said"]


def test_nothing_is_asked_of_the_server_before_something_is_typed():
    finding = Finding(Session(None))
    assert len(find(finding, "")) == len(find_pages(""))


def test_choosing_goes_there_and_a_late_answer_is_not_chosen_from(session, dataset):
    finding = Finding(session)
    find(finding, "invoices of", n=4)
    finding.choose(3, 0)
    assert session.page == "home"
    finding.choose(4, 9)
    assert session.page == "home"
    finding.choose(4, 0)
    assert (session.page, session.dataset) == ("datasets", dataset.id)


def test_the_latest_question_wins(session):
    finding = Finding(session)

    async def ask():
        await asyncio.gather(finding.find("invoice", 1), finding.find("hash", 2))

    asyncio.run(ask())
    assert finding.finder.answer["n"] == 2


def test_a_failed_search_leaves_the_others(session, monkeypatch):
    def refuse(*_, **__):
        raise SteelyardError("No rows today.")

    monkeypatch.setattr("steelyard_workbench.frame.finding.find_rows", refuse)
    assert find(Finding(session), "invoice") == [("dataset", "invoices of May")]


def test_the_title_names_the_open_thing_and_the_way_back_goes_to_all(session, dataset):
    heading = Heading(session)
    session.open("datasets", dataset=dataset.id)
    assert (heading.in_browser, heading.up.label) == ("invoices of May", "All datasets")
    labels = [item["label"] for item in heading.tabs.items]
    assert labels == ["Rows", "Versions", "Map", "Review", "Labeling"]
    heading.up.clicks += 1
    assert (session.page, session.dataset) == ("datasets", "")
    assert (heading.in_browser, heading.up.visible) == ("Datasets", False)
    assert [item["label"] for item in heading.tabs.items] == ["Datasets", *labels[1:]]
    session.open("families", family="router")
    assert heading.in_browser == "router"


def test_a_section_opens_where_it_was_left_and_then_at_all_of_its_things(session, dataset):
    heading = Heading(session)
    session.open("playground", dataset=dataset.id)
    heading.open_section("data")
    assert (session.page, session.dataset) == ("datasets", dataset.id)
    heading.open_section("data")
    assert (session.page, session.dataset) == ("datasets", "")
    heading.open_section("watch")
    assert session.page == "alarms"
