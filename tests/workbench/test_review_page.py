"""The page of Review without a browser: which draft is opened, begun and deleted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn

from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.review.page import Picker, ReviewPage
from support.review.desks import make_desk, texts
from support.review.drafts_in_memory import FakeClient, make_row


def open_page(client: FakeClient, **session: Any) -> ReviewPage:
    page = ReviewPage(Session(client, **session))
    page.open()
    return page


def test_without_datasets_the_page_leads_to_importing_one() -> None:
    page = open_page(FakeClient([], names=[]))
    assert "No datasets yet." in texts(page)
    assert "Import a dataset" in texts(page)


def test_no_dataset_is_shown_as_chosen_before_one_is() -> None:
    page = open_page(FakeClient([make_row(0)]))
    [chosen] = page.__panel__().select(lambda one: getattr(one, "label", "") == "Dataset")
    assert chosen.value == ""
    chosen.value = "ds_1"
    [start] = page.__panel__().select(lambda one: getattr(one, "label", "") == "Start a review")
    assert not start.disabled


def test_a_review_is_begun_from_a_dataset() -> None:
    page = open_page(FakeClient([make_row(0)]), dataset="ds_1")
    assert "No review is open." in texts(page)
    picker = page.parts[0]
    assert picker.state == "shown"
    [start] = page.__panel__().select(lambda one: getattr(one, "label", "") == "Start a review")
    assert not start.disabled
    start.clicks += 1
    assert page.session.draft == "dr_1"
    assert page.desk is not None


def open_picker(client: Any) -> tuple[Picker, list[str]]:
    gone: list[str] = []
    picker = Picker(Session(client), lambda _: None, gone.append)
    picker.part.start()
    return picker, gone


def test_older_drafts_are_loaded_when_they_are_asked_for() -> None:
    client = FakeClient([make_row(0)])
    pages = {
        None: SimpleNamespace(data=[SimpleNamespace(id="dr_2")], next_cursor="older"),
        "older": SimpleNamespace(data=[SimpleNamespace(id="dr_1")], next_cursor=None),
    }
    client.drafts.list = lambda **given: pages[given["cursor"]]  # type: ignore[method-assign]
    picker, _ = open_picker(client)
    assert "The 1 newest are listed; there are more." in texts(picker)
    [more] = picker.__panel__().select(lambda one: getattr(one, "label", "") == "Load more")
    more.clicks += 1
    opens = picker.__panel__().select(lambda one: getattr(one, "label", "") == "Open spring")
    assert len(opens) == 2
    assert not more.visible


def test_a_draft_is_deleted_once_its_name_is_typed() -> None:
    client = FakeClient([make_row(0)])
    deleted: list[str] = []
    held = SimpleNamespace(data=[SimpleNamespace(id="dr_1")], next_cursor=None)
    client.drafts.list = lambda **_: held  # type: ignore[method-assign]
    client.drafts.delete = deleted.append  # type: ignore[attr-defined]
    picker, gone = open_picker(client)
    [button] = picker.__panel__().select(lambda one: getattr(one, "label", "") == "Delete spring…")
    button.clicks += 1
    assert picker.asked is not None
    assert picker.asked.button.disabled
    schedule(picker.asked.confirm)
    assert not deleted
    picker.asked.entry.value_input = "spring"
    held.data = []
    schedule(picker.asked.confirm)
    assert deleted == gone == ["dr_1"]
    assert "No review is open." in texts(picker)


def test_the_page_passes_keys_on_only_while_a_draft_is_open() -> None:
    page = open_page(FakeClient([make_row(0)]), draft="dr_1")
    assert page.desk is not None
    page.desk.start()
    assert page.on_key("accept", 1)
    page.open()  # the same review, with what it held
    assert page.desk is not None
    closed = open_page(FakeClient([make_row(0)]))
    assert not closed.on_key("accept", 1)


def test_views_are_panel_objects() -> None:
    desk, _ = make_desk()
    assert isinstance(desk.__panel__(), pn.Column)
