"""The workbench's question before it continues a family: the base model, where there is a choice."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.errors import TooManyRowsError
from steelyard.families.fine_tune_wire import FineTuneEstimate
from steelyard.models.wire import ModelList
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.families.line_moves import NextFineTune
from steelyard_workbench.pages.families.page import FamiliesPage
from support.browser.shown_parts import texts
from support.families.told_families import (
    ESTIMATE,
    growth,
    in_turn,
    make_client,
    told_family,
    told_model,
    told_numbers,
)


def ask(client: Any) -> tuple[NextFineTune, Confirmation]:
    """Ask about continuing router; gives the plan and the dialog around it."""
    page = FamiliesPage(Session(client, page="families", family="router"))
    page.open()
    asyncio.run(page.one.ask_continue())
    return page.one.next_fine_tune, page.one.dialog


def bases_and(base: str = "hashing") -> Any:
    """Two base models, a connected one, a route, and the models of router."""
    bases = [
        told_model("hashing"),
        told_model("double"),
        told_model("far", engine="connected-chat"),
        told_model("first", engine="route"),
    ]
    return lambda: ModelList(data=[*bases, *told_numbers(base)], models=[])


def test_continuing_on_another_base_is_estimated_anew_and_sent():
    seen: list[dict[str, Any]] = []

    def estimate(name: str, **sent: Any) -> FineTuneEstimate:
        seen.append(sent)
        price = "0.75" if "base" in sent else "0.25"
        return msgspec.convert({**ESTIMATE, "price_usd": price}, FineTuneEstimate)

    client = make_client(
        families_get=lambda name: told_family(**{"continue": growth("new_data")}),
        families_estimate_continue=estimate,
        models_list=bases_and(),
    )
    plan, dialog = ask(client)
    assert (plan.base.options, plan.base.value) == (["hashing", "double"], "hashing")
    assert "trained on every row" in texts(dialog.dialog)
    assert "compares it with router@3" in texts(dialog.dialog)
    assert dialog.button.label == "Continue for 0.25 USD"
    plan.base.value = "double"
    assert "0.75 USD" in texts(dialog.dialog)
    assert (dialog.button.label, dialog.button.disabled) == ("Continue for 0.75 USD", False)
    asyncio.run(dialog.confirm())
    ((_, sent),) = client.families.of("continue_")
    assert (sent["base"], sent["latest"], sent["max_price_usd"]) == ("double", "ft-ftj_3", "0.75")
    assert seen == [{"latest": "ft-ftj_3"}, {"latest": "ft-ftj_3", "base": "double"}]


def test_nothing_is_continued_on_a_base_whose_plan_was_not_shown():
    estimates = in_turn(
        msgspec.convert(ESTIMATE, FineTuneEstimate),
        TooManyRowsError("The fine-tune would train on 60,000 rows."),
        msgspec.convert(ESTIMATE, FineTuneEstimate),
    )
    client = make_client(families_estimate_continue=estimates, models_list=bases_and())
    plan, dialog = ask(client)
    plan.base.value = "double"
    assert "too_many_rows" in texts(dialog.dialog)
    assert dialog.button.disabled
    asyncio.run(dialog.confirm())
    assert not client.families.of("continue_")
    plan.base.value = "hashing"
    assert not dialog.button.disabled
    asyncio.run(dialog.confirm())
    ((_, sent),) = client.families.of("continue_")
    assert "base" not in sent


@pytest.mark.parametrize(
    ("fields", "models", "shown"),
    [
        ({}, bases_and(), "hashing"),
        ({}, bases_and(base="double"), "double"),
        ({}, bases_and(base="far"), None),
        ({}, lambda: ModelList(data=[told_model("hashing"), *told_numbers()], models=[]), None),
        ({"latest": None, "served": None, "models": [], "move": None}, bases_and(), "hashing"),
    ],
)
def test_a_base_is_chosen_where_there_is_another_to_move_to(fields, models, shown):
    family = told_family(**{"continue": growth("new_data"), **fields})
    plan, _ = ask(make_client(families_get=lambda name: family, models_list=models))
    assert (plan.base.visible, plan.base.value) == (shown is not None, shown)
