"""First answers are kept: with feedback, and as rows of a dataset."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import steelyard
from steelyard.client.model_choices import list_choices
from steelyard.families.wire import FamilyList
from steelyard.models.wire import ModelList
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.playground.page import PlaygroundPage
from steelyard_workbench.pages.playground.saving import find_takers
from support.browser.shown_parts import texts

TEAM = {"id": "team", "question": "Who owns it?", "outcomes": ["billing", "other"]}


@pytest.fixture(scope="module")
def client():
    with steelyard.embed(engine="hashing", store="off") as running:
        yield running.client


def ask(client, context, right, *, keep=False):
    page = PlaygroundPage(Session(client, page="playground"))
    page.open()

    async def go():
        page.context.value = context
        page.keep.value = keep
        await page.ask()
        await page.saving.part.refresh()
        for name, outcome in right.items():
            assert page.saving.right[name].value == "—"
            page.saving.right[name].value = outcome
        await page.saving.save()

    return page, go


def test_two_questions_make_the_first_dataset_and_a_third_is_added(client):
    page, go = ask(client, "Charged twice.", {"team": "billing"})
    asyncio.run(go())
    assert "1 of the 2 rows" in texts(page.saving.said)
    assert client.datasets.list().data == []
    page.context.value = "Where is my parcel?"

    async def second():
        await page.ask()
        await page.saving.part.refresh()
        page.saving.right["team"].value = "shipping"
        await page.saving.save()

    asyncio.run(second())
    (dataset,) = client.datasets.list().data
    assert (dataset.name, dataset.rows) == ("my_questions", 2)
    request = page.request()
    assert [one.dataset.id for one in find_takers(client, request["decisions"])] == [dataset.id]
    reworded = [{**request["decisions"][0], "question": "Which team is it for?"}]
    (taker,) = find_takers(client, reworded)
    assert taker.decisions[0]["question"] == request["decisions"][0]["question"]
    assert find_takers(client, [TEAM]) == []
    assert find_takers(client, [{**TEAM, "id": "another"}]) == []


def test_an_answer_is_kept_only_where_that_was_chosen_and_feedback_is_never_prefilled(client):
    for keep in (False, True):
        page, go = ask(client, "Charged twice.", {"team": "billing"}, keep=keep)
        asyncio.run(go())
        kept = list(client.decision_log(limit=5).data)
        assert len(kept) == keep
    shown = page.feedback
    assert {field.value for field in shown.right.values()} == {"—"}

    async def send():
        await shown.send()
        assert "Choose which outcome" in texts(shown.said)
        shown.right["team"].value = "billing"
        # It is said once: the row has it too.
        assert page.saving.right["team"].value == "billing"
        await shown.send()

    asyncio.run(send())
    assert client.stored_decision(kept[0].id).feedback


def test_choices_have_families_first_and_no_name_of_another_vendor(client):
    found = client.models.choices()
    assert [(one.name, one.kind, one.reason) for one in found] == [("hashing", "base", None)]
    assert "jev-latest" in {one.name for one in client.models.list().models}
    assert list_choices(ModelList(data=[], models=[]), FamilyList(data=[])) == []
