"""A family's description: its switches, its events, the price of a fine-tune."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.families.fine_tune_wire import FineTuneEstimate
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.families.family_details import timeline_rows
from steelyard_workbench.pages.families.page import FamiliesPage
from support.browser.shown_parts import buttons, texts
from support.families.told_families import ESTIMATE, family_job, make_client, told_family, told_job


def open_page(client: Any, **session: Any) -> FamiliesPage:
    page = FamiliesPage(Session(client, page="families", **session))
    page.open()
    return page


def test_where_all_is_free_nothing_is_said_of_fees():
    free = msgspec.convert({**ESTIMATE, "price_usd": "0"}, FineTuneEstimate)
    page = open_page(make_client(families_estimate_continue=lambda *a, **k: free), family="router")
    asyncio.run(page.one.ask_continue())
    shown = texts(page.one.dialog.dialog)
    assert "USD" not in shown
    assert "Fee" not in shown
    assert "Continue" in buttons(page.one.dialog.dialog)


@pytest.mark.parametrize(
    ("seconds", "rank", "said"),
    [
        (50, 0, "less than a minute, by the last like it"),
        (6000, 0, "about 14 min, by the last like it"),
        (6000, 8, "not known yet: nothing like it has been trained here"),
    ],
)
def test_a_plan_says_how_long_it_takes_by_those_that_ended_like_it(seconds, rank, said):
    like = told_job(updated_at=1_790_000_000.0 + seconds)
    like = msgspec.structs.replace(
        like, hyperparameters=msgspec.structs.replace(like.hyperparameters, lora_rank=rank)
    )
    page = open_page(make_client(jobs_list=lambda **_: iter([like])))
    page.form.family.value = "bee"
    asyncio.run(page.form.estimate())
    assert said in texts(page.form.place)


def test_every_switch_has_its_sentence_and_a_refused_one_its_reason():
    page = open_page(
        make_client(families_get=lambda name: told_family(jobs=[family_job(3)])), family="router"
    )
    page.one.details.open()
    shown = texts(page.__panel__())
    for sentence in (
        "When off, requests to router are refused.",
        "Kept warm, its model stays loaded",
        "Its own switch answers calls to router@3 by its number",
        "Its own keep warm keeps it loaded for them",
    ):
        assert sentence in shown


def test_the_line_has_events_times_and_authors():
    family = told_family(
        moved={"at": 1_790_000_100.0, "from": None},
        switched_on=False,
        off_reason="idle",
        off_at=1_790_090_000.0,
        jobs=[family_job(3), family_job(4, outcome="gate_failed", output_model=None, reason="No.")],
    )
    rows = timeline_rows(family)
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
    told = {what: (gate, who) for _, what, gate, who in rows}
    assert told["switched off"] == ("—", "the server, because it was not used")
    assert told["moved from no model to router@2"] == ("—", "the model line itself")
    right = "right in 78 % → 87 % of the answers"
    assert told[f"router@3 joined, {right}"] == ("✓ passed", "the check")
    assert told["fine-tune on version 4 started; it made no model"][0] == "✗ not passed"
    assert told["router@1 deleted"][1] == "its owner"
    assert told["started from hashing"][1] == "its owner"
