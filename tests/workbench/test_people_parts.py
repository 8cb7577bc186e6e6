"""Parts of the pages of people and money by themselves: the dialog for a code, and lists."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from steelyard.errors import ConfirmSignInError, NotSignedInError
from steelyard.people.operator_wire import ConnectedModel
from support.browser.shown_parts import texts
from support.servers.held_calls import until_done

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.kit import confirming
from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.kit.confirming import Confirming
from steelyard_workbench.kit.personal import PagedTable
from steelyard_workbench.kit.tasks import Scope
from steelyard_workbench.pages.operator.page import show_models
from steelyard_workbench.pages.settings.page import show_limits
from support.waiting import next_turn


def raise_(error):
    raise error


def test_two_that_are_sensitive_at_once_have_one_dialog():
    nobody = SimpleNamespace(auth=SimpleNamespace(session=lambda: raise_(NotSignedInError("No."))))

    async def ask_twice(*, is_confirmed):
        confirm = Confirming(nobody)
        both = [asyncio.create_task(confirm._ask()) for _ in range(2)]
        await next_turn()
        [shown] = confirm._box
        confirm.shown.close(is_confirmed=is_confirmed)
        assert await asyncio.gather(*both) == [is_confirmed] * 2
        await until_done()
        assert not confirm.is_open
        assert not shown.open

    asyncio.run(ask_twice(is_confirmed=True))
    asyncio.run(ask_twice(is_confirmed=False))


def test_an_unanswered_dialog_is_closed(monkeypatch):
    monkeypatch.setattr(confirming, "_OPEN_S", 0.01)
    nobody = SimpleNamespace(auth=SimpleNamespace(session=lambda: raise_(NotSignedInError("No."))))

    async def wait():
        confirm = Confirming(nobody)
        with pytest.raises(ConfirmSignInError):
            await confirm(lambda: raise_(ConfirmSignInError("A code.")))
        assert not confirm.is_open

    asyncio.run(wait())


def test_connected_models_and_limits_say_how_they_are():
    model = ConnectedModel(
        name="qwen",
        engine="chat",
        is_available=False,
        is_calibrated=True,
        is_teacher=True,
        n_waiting=3,
    )
    assert "does not answer" in texts(show_models([model]))
    assert "members of an account" in texts(show_limits({}))


def test_older_lines_go_under_the_present_ones():
    pages = {
        None: SimpleNamespace(data=["c", "b"], next_cursor="2"),
        "2": SimpleNamespace(data=["a"], next_cursor=None),
    }
    pressed = []
    for open_ in (None, pressed.append):
        table = PagedTable(
            "The letters",
            pages.__getitem__,
            ("letter",),
            lambda one: (one,),
            nothing="None.",
            scope=Scope(),
            open_=open_,
        )
        asyncio.run(table.part.refresh())
        assert table.older.visible
        asyncio.run(table.load_older())
        assert table.found == ["c", "b", "a"]
        assert not table.older.visible
    table.__panel__().select(MarkTable)[0].press(2)
    assert pressed == ["a"]
