"""After sealing a draft: an evaluation of the same models, and a family that goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.families.page import FamiliesPage
from support.browser.shown_parts import buttons, texts
from support.families.told_families import (
    family_job,
    growth,
    make_client,
    told_evaluation,
    told_family,
)
from support.review.desks import make_desk


def test_a_sealed_dataset_is_evaluated_again_and_grows_its_family() -> None:
    desk, client = make_desk(page="review")
    newest = [told_evaluation(named="router"), told_evaluation()]
    scored = [*newest, told_evaluation(model_id="old", dataset_version=2)]
    client.evaluations.list = lambda dataset_id: iter(scored)
    made: list[tuple[str, list[str]]] = []
    client.evaluations.create = lambda *given: made.append(given) or SimpleNamespace(queued=2)
    grown = [told_family(**{"continue": growth("new_data")}), told_family(dataset_id="ds_9")]
    client.families.list = lambda: SimpleNamespace(data=grown)
    schedule(desk.seal.seal)
    assert "Labels in version 2" in texts(desk.beside.__panel__())
    shown = buttons(desk.__panel__())
    shown["Evaluate again"].clicks += 1
    assert made == [("ds_1", ["router", "hashing"])]
    assert (desk.session.page, desk.session.dataset) == ("evaluations", "ds_1")
    shown["Continue router…"].clicks += 1
    assert (desk.session.page, desk.session.family) == ("families", "router")
    assert desk.session.view == "continue"


def test_a_sealed_dataset_without_a_family_is_trained_on() -> None:
    desk, client = make_desk(page="review")
    client.evaluations.list = lambda dataset_id: iter(())
    client.families.list = lambda: SimpleNamespace(data=[told_family(dataset_id="ds_9")])
    schedule(desk.seal.seal)
    buttons(desk.__panel__())["Train on it"].clicks += 1
    assert (desk.session.page, desk.session.view) == ("families", "start")
    assert desk.session.dataset == "ds_1"


def open_family(told: Any) -> FamiliesPage:
    client = make_client(families_get=lambda name: told)
    page = FamiliesPage(Session(client, page="families", family="router", view="continue"))
    page.open()
    return page


def test_a_link_that_continues_asks_at_once_and_only_once():
    told = told_family(jobs=[family_job(3)], **{"continue": growth("new_data")})
    page = open_family(told)
    assert "0.25 USD" in texts(page.one.dialog.dialog)
    page.open()
    assert page.one.dialog is None
    nothing_new = told_family(jobs=[family_job(3)], **{"continue": growth()})
    assert open_family(nothing_new).one.dialog is None
