"""The passkeys of the signed-in user: the list, and confirming sensitive actions."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.people.wire import Passkey, PasskeyChallenge, PasskeyList, SignInWays
from steelyard_workbench.kit.components.passkey_dialog import DialogRefusedError
from steelyard_workbench.parts.passkeys import PasskeyPanel
from support.browser.shown_parts import buttons, texts

OWN = Passkey(id="pk_1", name="laptop", host="localhost", created_at=1.0, last_used_at=None)


class Auth:
    """A server's answers, and its requests."""

    def __init__(self, *found, is_on=True):
        self.found, self.is_on, self.asked = list(found), is_on, []

    def passkeys(self):
        return PasskeyList(data=self.found)

    def ways(self):
        return SignInWays(passkeys=self.is_on, issuer=None)

    def start_adding_passkey(self, origin):
        self.asked.append(("begin", origin))
        return PasskeyChallenge(options={"challenge": "c"}, expires_at=1.0)

    def add_passkey(self, name, credential):
        self.asked.append(("add", name, credential))
        self.found.append(OWN)


class Dialog:
    """A browser that makes a passkey, or refuses to."""

    def __init__(self, refuses=""):
        self.refuses = refuses

    async def until_drawn(self):
        pass

    async def origin(self):
        return "http://localhost:1"

    async def make(self, options):
        if self.refuses:
            raise DialogRefusedError(self.refuses)
        return {"id": "made", **options}


def shown(auth, **given):
    passkeys = PasskeyPanel(SimpleNamespace(auth=auth), **given)
    asyncio.run(passkeys.listed.refresh())
    return passkeys


def test_a_server_that_reads_none_says_how_it_would():
    off = shown(Auth(is_on=False)).__panel__()
    assert "steelyard[passkeys]" in texts(off)
    assert not buttons(off)
    # What was added while it did is still there, to be removed.
    assert "Remove laptop" in buttons(shown(Auth(OWN, is_on=False)).__panel__())


def test_sensitive_actions_ask_for_a_code():
    auth, confirmed = Auth(), []

    async def confirm(call, *args):
        confirmed.append(call.__name__)
        return call(*args)

    passkeys = shown(auth, confirm=confirm)
    passkeys.dialog = Dialog()
    passkeys.called.value_input = " phone "
    asyncio.run(passkeys.add())
    assert confirmed == ["start_adding_passkey", "add_passkey"]
    assert auth.asked == [
        ("begin", "http://localhost:1"),
        ("add", "phone", {"id": "made", "challenge": "c"}),
    ]
    assert "Remove laptop" in buttons(passkeys.__panel__())


def test_a_dialog_that_was_closed_adds_nothing():
    auth = Auth()
    passkeys = shown(auth)
    passkeys.dialog = Dialog("The dialog was closed.")
    asyncio.run(passkeys.add())
    assert [one[0] for one in auth.asked] == ["begin"]
    assert "The dialog was closed." in texts(passkeys.__panel__())
