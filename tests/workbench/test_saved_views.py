"""Saved views without a browser: saved under a name, opened by a link, deleted."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

import steelyard

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.errors import KeyScopeError
from steelyard_workbench.frame.saved_views import SavedViews
from steelyard_workbench.kit.session import Session
from support.browser.shown_parts import named, texts


def test_a_view_is_saved_under_a_name_and_deleted() -> None:
    with steelyard.embed(engine="hashing", jobs="off") as server:
        session = Session(server.client, page="evaluations", dataset="ds_1", query='{"a": 1}')
        views = SavedViews(session)
        views.open()
        assert "No views yet." in texts(views.part.__panel__())
        asyncio.run(views.save())
        assert "Write a name" in texts(views.problem)
        views.title.value_input = " <b>mine "
        asyncio.run(views.save())
        told = texts(views.part.__panel__())
        assert "&lt;b&gt;mine</a>" in told
        assert 'href="?page=evaluations&amp;dataset=ds_1&amp;query=' in told
        views.title.value_input = "<b>mine"
        asyncio.run(views.save())
        assert "take another name" in texts(views.problem)
        # What others write by hand is cut to what a view holds.
        server.client.views.save("by hand", 'page=home&x="><script>')
        asyncio.run(views.part.refresh())
        assert 'href="?page=home"' in texts(views.part.__panel__())
        [_, delete] = named(views.part.__panel__(), "Delete")
        delete.clicks += 1
        assert [one.name for one in server.client.views.list()] == ["by hand"]
        assert "mine" not in texts(views.part.__panel__())


def test_a_key_that_may_not_save_says_so() -> None:
    def refuse(*_: object) -> None:
        raise KeyScopeError("This key reads and nothing else.")

    client = SimpleNamespace(views=SimpleNamespace(list=lambda: iter([]), save=refuse))
    views = SavedViews(Session(client))  # type: ignore[arg-type]
    views.title.value_input = "mine"
    asyncio.run(views.save())
    assert "This key reads and nothing else." in texts(views.problem)
