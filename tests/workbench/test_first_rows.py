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
from steelyard_workbench.pages.playground.decision_form import DecisionFields
from steelyard_workbench.pages.playground.page import PlaygroundPage
from steelyard_workbench.pages.playground.saving import find_takers
from support.browser.shown_parts import choices, choose, texts
from support.servers.held_calls import until_done

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


@pytest.mark.parametrize("keep", [False, True])
def test_one_press_gives_feedback_and_keeps_the_row_and_nothing_is_prefilled(client, keep):
    page, _ = ask(client, "Charged twice.", {}, keep=keep)
    before = len(client.decision_log(limit=50).data)

    async def press():
        page.context.value, page.keep.value = f"Charged twice, {keep}.", keep
        await page.ask()
        await page.saving.part.refresh()
        assert {field.value for field in page.saving.right.values()} == {"—"}
        assert len(client.decision_log(limit=50).data) == before + keep
        choose(page.saving.fields, "Yes, it was")
        await until_done()

    asyncio.run(press())
    kept, *_ = client.decision_log(limit=50).data
    assert len(client.decision_log(limit=50).data) == before + 1
    top = client.decide(page.context.value, page.request()["decisions"]).decisions["team"].top
    assert client.stored_decision(kept.id).feedback == {"team": top}
    assert "Live has it as feedback." in texts(page.saving.said)
    assert page.saving.right["team"].value == top


def test_a_yes_no_is_corrected_by_one_press_and_others_by_a_choice(client):
    page, _ = ask(client, "Charged twice.", {})

    def offered(decisions):
        page.put([(fields, None) for fields in decisions])
        asyncio.run(page.ask())
        return list(choices(page.saving.buttons))

    yes_no = DecisionFields("refund", "binary", "Is money asked back?", "")
    yes, no = offered([yes_no])
    assert yes == "Yes, it was"
    assert no in {"No, it is “no”", "No, it is “yes”"}
    several = DecisionFields("team", "single", "Whose is it?", "a\nb\nc")
    assert offered([several]) == ["Yes, it was", "No…"]
    assert not page.saving.choose.visible
    choose(page.saving.buttons, "No…")
    assert page.saving.choose.visible


def test_choices_have_families_first_and_no_name_of_another_vendor(client):
    found = client.models.choices()
    assert [(one.name, one.kind, one.reason) for one in found] == [("hashing", "base", None)]
    assert "jev-latest" in {one.name for one in client.models.list().models}
    assert list_choices(ModelList(data=[], models=[]), FamilyList(data=[])) == []
