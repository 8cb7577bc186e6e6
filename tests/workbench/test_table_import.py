"""Tables imported on the page of datasets: columns selected, rows shown, the rest reported."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import steelyard
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.datasets import table_columns
from steelyard_workbench.pages.datasets.page import DatasetsPage
from support.browser.shown_parts import named, texts_of
from support.datasets.dataset_rows import make_rows

OUTCOMES = ["billing", "shipping"]


@pytest.fixture(scope="module")
def client():
    with steelyard.embed(engine="hashing") as server:
        yield server.client


def opened(client, **chosen):
    page = DatasetsPage(Session(client, page="datasets", **chosen))
    page.open()
    return page


def test_a_table_becomes_a_dataset_as_its_columns_are_said_to_mean(client):
    rows = [f"Message number {n};{OUTCOMES[n % 2]};{n % 3}" for n in range(20)]
    table = "\n".join(["message;team;stars", *rows, ";billing;1"]).encode("utf-16")
    page = opened(client)
    asyncio.run(page.importing.take("tickets.csv", table))
    columns, found = page.importing.columns, page.importing.found
    assert (columns.context.value, columns.labels.value) == ("message", ["team", "stars"])
    told = texts_of(found)
    assert "semicolons, UTF-16" in told
    assert "20 rows can be imported" in told
    assert "line 22: Its context is empty" in told
    assert "Message number 0 → team: **billing**" in told
    [left_out] = named(found, "Download the rows that are left out")
    assert left_out is not None

    columns.labels.value = []
    assert "No column has labels" in texts_of(found)
    assert page.importing.button.disabled
    columns.labels.value = ["team"]
    columns.questions["team"].value = "Which team should own it?"
    schedule(page.importing.send)
    made = client.datasets.get(page.session.dataset)
    assert (made.name, made.rows) == ("tickets", 20)
    [kept] = client.datasets.rows(made.id, limit=1).data
    assert [one["question"] for one in kept.decisions] == ["Which team should own it?"]

    page = opened(client, dataset=made.id)
    more = b'{"message": "Another text", "team": "shipping"}\n{"message": "Odd", "team": "it"}\n'
    asyncio.run(page.importing.take("more.jsonl", more))
    assert page.importing.is_next_version
    assert "line 2: team is 'it', which is no outcome of team" in texts_of(page.importing.found)
    schedule(page.importing.send)
    assert client.datasets.get(made.id).rows == 21
    client.datasets.delete(made.id)


def test_a_file_without_a_table_has_a_remedy(client):
    page = opened(client)
    asyncio.run(page.importing.take("broken.parquet", b"PAR1 and no more"))
    assert "cannot be read as Parquet" in texts_of(page.importing.found)
    assert not page.importing.form.visible


@pytest.mark.parametrize(("format_", "filename"), [("csv", "a.csv"), ("hf", "a.zip")])
def test_an_exported_dataset_is_imported_as_it_was(client, format_, filename):
    made = client.datasets.create("exported", make_rows(12))
    data = client.datasets.export(made.id, format=format_)
    client.datasets.delete(made.id)
    page = opened(client)
    asyncio.run(page.importing.take(filename, data))
    assert "12 rows of an exported dataset" in texts_of(page.importing.found)
    schedule(page.importing.send)
    again = client.datasets.get(page.session.dataset)
    assert (again.name, again.rows, again.split) == ("a", 12, made.split)
    page = opened(client, dataset=again.id)
    asyncio.run(page.importing.take(filename, data))
    assert "12 rows of an exported dataset" in texts_of(page.importing.found)
    client.datasets.delete(again.id)


def test_variants_of_outcomes_are_merged_by_one_press_before_anything_is_stored(
    client, monkeypatch
):
    values = ["Billing", "BILLING", "billing", "Refund", "refunds", "shipping"]
    lines = [f"Message number {n} of all;{values[n % 6]}" for n in range(24)]
    page = opened(client)
    schedule(page.importing.send)
    assert not texts_of(page.importing.said), "a press while a file is on its way does nothing"
    asyncio.run(page.importing.take("messy.csv", "\n".join(["message;team", *lines]).encode()))
    outcomes = page.importing.columns.outcomes["team"]
    # Capitals are joined as the command line joins them; the rest is proposed.
    assert "billing as Billing" in texts_of(page.importing.found)
    assert list(outcomes.names) == ["Billing", "Refund", "refunds", "shipping"]
    assert "Merge 1 variant: 3 answers stay" in str(outcomes.merge.label)
    # *Import* is pressed before the rows are made anew.
    monkeypatch.setattr(table_columns, "schedule", lambda work: None)
    outcomes.take_proposal()
    outcomes.names["Billing"].value = "money"
    outcomes.descriptions["Billing"].value = "Charges and invoices"
    assert page.importing.button.disabled
    schedule(page.importing.send)
    [kept] = client.datasets.rows(page.session.dataset, limit=1).data
    (asked,) = kept.decisions
    assert set(asked["outcomes"]) == {"money", "Refund", "shipping"}
    assert asked["outcomes"]["money"] == "Charges and invoices"


def test_values_that_mean_no_label_are_chosen(client):
    values = ["billing", "shipping", "unknown", "-1"]
    lines = [f"Message number {n} of all;{values[n % 4]}" for n in range(24)]
    page = opened(client)
    asyncio.run(page.importing.take("some.csv", "\n".join(["message;team", *lines]).encode()))
    columns = page.importing.columns
    assert columns.no_label["team"].value == ["-1"]
    assert "18 rows can be imported" in texts_of(columns.shown)
    columns.no_label["team"].value = ["-1", "unknown"]
    asyncio.run(columns.convert())
    assert "12 rows can be imported" in texts_of(columns.shown)
    assert "team: rows with -1, unknown have no label" in texts_of(columns.shown)
    columns.no_label["team"].value = []
    asyncio.run(columns.convert())
    assert "24 rows can be imported" in texts_of(columns.shown)


def test_a_row_has_one_outcome_or_several_labels_as_it_is_chosen(client):
    lines = [
        {"message": f"Message number {n}", "topics": ["late", "refund"][: n % 3]} for n in range(9)
    ]
    page = opened(client)
    asyncio.run(page.importing.take("some.json", json.dumps(lines).encode()))
    columns = page.importing.columns
    columns.labels.value = ["topics"]
    [kind] = named(columns.__panel__(), "A row of topics has")
    assert kind.value == "several"
    assert columns.questions["topics"].value == 'Does the topic "{}" fit?'
    assert "topics_late: **yes**, topics_refund: **no**" in texts_of(columns.shown)
    kind.value = "single"
    asyncio.run(columns.convert())
    assert columns.questions["topics"].value == "Which topic fits?"
    assert "3 rows can be imported" in texts_of(columns.shown)
    assert "topics: **late**" in texts_of(columns.shown)
    columns.questions["topics"].value = "Is it about {}?"
    kind.value = "several"
    asyncio.run(columns.convert())
    [label] = columns.columns.labels
    assert [decision["question"] for decision in label.decisions()] == [
        "Is it about late?",
        "Is it about refund?",
    ]
