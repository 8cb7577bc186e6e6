"""The playground with several models: columns, a failure among them, a row, and one saved."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import steelyard

pytest.importorskip("panel", reason="needs the workbench extra")

from panel.pane import Bokeh

from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.playground.page import PlaygroundPage
from steelyard_workbench.pages.playground.side_by_side import AnswersTogether
from support.browser.shown_parts import buttons, named, texts

RULES = {"id": "team", "kind": "single", "question": {"rule": "Who?"}, "outcomes": ["a", "b: c"]}


@pytest.fixture(scope="module")
def server() -> Any:
    with steelyard.embed(engine="hashing", base_models="second=hashing", jobs="off") as running:
        yield running


def opened(server: Any, **chosen: Any) -> PlaygroundPage:
    page = PlaygroundPage(Session(server.client, page="playground", **chosen))
    page.open()
    return page


def test_several_models_answer_side_by_side_and_one_failure_leaves_the_others(server: Any) -> None:
    page = opened(server)
    beside, model = page.beside, page.model
    assert list(beside.options) == ["second"]
    model.value = "second"
    assert list(beside.options) == ["hashing"]
    model.value = "hashing"
    beside.value = ["second"]
    asyncio.run(page.ask())
    told = texts(page.answer)
    assert "**team**: 1 of 2 billing, 1 of 2 " in told
    assert told.count("input tokens") == 2
    assert "USD" not in told  # all is free here
    [chart] = [pane.object for pane in page.answer.select(Bokeh)]
    assert {model for _, model in chart.y_range.factors} == {"hashing", "second"}

    away = AnswersTogether(server.client, ["hashing", "nobody"], lambda _: page.context)
    asyncio.run(away.ask(page.request()))
    told = texts(away.__panel__())
    assert "No answer:" in told
    assert "hashing" in told
    assert (away.answers["hashing"].problem, away.answers["nobody"].answer) == (None, None)


def test_a_row_is_asked_as_it_is_and_saved_as_another(server: Any) -> None:
    client = server.client
    row = {"context": {"n": 1}, "decisions": [RULES], "targets": {"team": {"b: c": 1.0}}}
    made = client.datasets.create("rules", training=[row, {**row, "context": "other"}])
    page = opened(server, dataset=made.id, row=0, view="row")
    assert "Row 0, labelled team: b: c" in texts(page.origin)
    request = page.request()
    assert (request["context"], request["decisions"]) == (row["context"], [RULES])

    asyncio.run(page.ask())
    assert page.saving is not None
    assert page.saving.right["team"].value == "b: c"  # what the row says goes before the model
    saving = page.saving
    asyncio.run(saving.part.refresh())
    assert saving.dataset.value == made.id
    page.context.value = "A pasted text."
    named(page.form_box, "Question")[0].value = "Which one?"
    request = page.request()
    assert request["context"] == "A pasted text."
    assert request["decisions"][0]["question"] == "Which one?"

    saving.right["team"].value = "a"
    saving.side.value = "evaluation"
    asyncio.run(saving.save())
    assert "a context keeps its side" in texts(saving.fields)
    saving.side.value = "training"
    asyncio.run(saving.save())
    assert "Kept: version 2 of rules has it." in texts(saving.fields)
    newest = client.datasets.search(made.id).data[-1]
    assert (newest.context, newest.targets) == ({"n": 1}, {"team": {"a": 1.0}})
    buttons(saving.fields)["Open the dataset"].clicks += 1
    assert (page.session.page, page.session.view) == ("datasets", "")

    saving.right["team"].value = "—"
    asyncio.run(saving.save())
    assert "Say which answer is right" in texts(saving.fields)


def test_a_row_that_is_not_there_says_so(server: Any) -> None:
    row = {"decisions": [RULES], "targets": {"team": {"a": 1.0}}}
    rows = [{"context": text, **row} for text in ("x", "y")]
    made = server.client.datasets.create("few", training=rows)
    page = opened(server, dataset=made.id, row=7, view="row")
    assert "The dataset has no row 7." in texts(page.origin)


def test_a_named_decision_is_asked_by_its_name_until_something_of_it_is_changed(
    server: Any,
) -> None:
    client = server.client
    client.named_decisions.create("whose", [RULES], model="second")
    page = opened(server, named="whose")
    assert "**whose**, version 1" in texts(page.origin)
    assert (page.request()["decisions"], page.model.value) == ([RULES], "second")
    assert '"decision": "whose"' in page.show_code(page.request()).texts["JSON"]
    page.keep.value = True
    asyncio.run(page.ask())
    assert client.decision_summary(named="whose").answers == 1

    page.memory.in_tab.text = page.memory.text  # a reload puts back what was typed
    page.model.value = "hashing"
    asyncio.run(page.ask())
    assert client.decision_summary(named="whose").answers == 1
    assert page.session.model == ""
    buttons(page.__panel__())["Ask something else"].clicks += 1
    assert (page.session.named, page.request()["decisions"][0]["id"]) == ("", "team")
    assert page.request()["decisions"] != [RULES]
