"""The pages of people and money: what each role sees and changes, and codes for what is sensitive."""

from __future__ import annotations

import asyncio
import queue
import re
import time

import pytest

import steelyard
from steelyard.accounts.service import AccountService
from steelyard.client import Client, ClientOptions
from steelyard.errors import ConfirmSignInError, NotSignedInError
from steelyard.people import mail_service
from steelyard.storage import open_state
from support.console import begin_session, code_of
from support.held_calls import HeldCall, Instead, until_done
from support.shown_parts import buttons, named, texts, texts_of

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench import corner
from steelyard_workbench.app import App
from steelyard_workbench.components.mark_table import MarkTable
from steelyard_workbench.navigation import entries_for
from steelyard_workbench.pages.account import AccountPage
from steelyard_workbench.session import Session
from steelyard_workbench.visitors import VisitorClient

MIA, LEO, BEA, RITA, SAM = (f"{name}@example.org" for name in ("mia", "leo", "bea", "rita", "sam"))
ROLES = {MIA: "owner", LEO: "developer", BEA: "billing", RITA: "reviewer", SAM: "developer"}
#: Seconds after which a code has been given too long ago.
_LONG_AGO_S = 1000.0


@pytest.fixture(scope="module")
def letters():
    return queue.SimpleQueue()


@pytest.fixture(scope="module")
def server(tmp_path_factory, letters):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mail_service, "write_to_terminal", letters.put)
        with steelyard.embed(home, engine="hashing", accounts="on", operators=SAM) as running:
            yield running


@pytest.fixture(scope="module")
def state(server):
    opened = open_state(f"sqlite:///{server.home / 'state.sqlite'}")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def account(state):
    """An account whose name, unlike that of the server's own, can be changed."""
    return AccountService(state, accounts_enabled=True).create_account("acme").id


@pytest.fixture
def look(server, state, account):
    """Make what somebody's browser looks at."""
    clients = []

    def look(email, *, ago=0.0, **chosen):
        token = begin_session(
            state, email, at=time.time() - ago, account_id=account, role=ROLES[email]
        )
        clients.append(Client(ClientOptions(server.url, session=token, agent="A browser")))
        return Session(clients[-1], who=clients[-1].auth.session(), **chosen)

    yield look
    for client in clients:
        client.close()


def opened(page_of, session):
    page = page_of(session)
    page.open()
    assert [part.problem for part in page.parts] == [None] * len(page.parts)
    return page


def account_page(session, section="profile"):
    session.param.update(page="account", view=section)
    return opened(AccountPage, session)


def lines(page, label):
    """The lines of a table, and the table."""
    [found] = [one for one in page.__panel__().select(MarkTable) if one.label == label]
    return found


def press(page, label):
    press_in(page.__panel__(), label)


def press_in(shown, label):
    [button] = [one for one in named(shown, label) if hasattr(one, "clicks")]
    button.clicks += 1


def letter_to(letters, email):
    """The next letter to somebody."""
    while (letter := letters.get(timeout=60)).to != email:
        pass
    return letter


def test_the_menu_has_the_pages_of_a_role(look):
    assert {one.slug for one in entries_for(None)} & {"account"} == set()
    found = {
        email: [one.slug for one in entries_for(look(email).who) if one.is_for is not None]
        for email in ROLES
    }
    assert found == {key: ["account"] for key in ROLES}


def test_without_accounts_it_says_how_to_turn_them_on(server):
    with steelyard.embed(engine="hashing") as without:
        page = opened(AccountPage, Session(without.client, page="account"))
        assert "steelyard up --accounts on" in texts(page.__panel__())
    page = opened(AccountPage, Session(server.client, page="account"))
    assert "STEELYARD_API_KEY" in texts(page.__panel__())
    with Client(ClientOptions(server.url, session="")) as nobody:
        page = opened(AccountPage, Session(nobody, page="account"))
        assert "Nobody is signed in" in texts(page.__panel__())


def test_an_owner_renames_exports_deletes_and_restores_the_account(look, server):
    session = look(MIA)
    page = account_page(session)
    assert "acme" in texts_of(page.__panel__())
    section = page.open_section
    section.called.value_input = "acme two"
    press(page, "Rename")
    assert "The account is called acme two." in texts(section.said)
    assert [one.name for one in session.who.accounts] == ["acme two"]
    section.called.param.update(value="acme", value_input="acme")
    press(page, "Rename")
    assert section._export()[:2] == b"PK"
    press(page, "Delete the account …")
    question = section.confirmation
    assert "Export it first" in texts_of(question.dialog) + str(buttons(question.dialog))
    assert question.button.disabled
    question.entry.value_input = "acme"
    question.button.clicks += 1
    assert not question.dialog.open
    assert "unless you restore it" in texts(section.said)
    assert "This account is deleted on" in texts(page.__panel__())
    assert "Restore the account" not in buttons(account_page(look(LEO)).__panel__())
    press(page, "Restore the account")
    assert session.client.account.get().deletes_at is None
    assert "The account stays." in texts(section.said)


def test_an_export_that_is_too_large_for_a_browser_says_where_to_write_it(look, monkeypatch):
    from steelyard_workbench.people import profile

    monkeypatch.setattr(profile, "MOST_BYTES", 10)
    [download] = [
        one for one in account_page(look(MIA)).__panel__().select() if hasattr(one, "callback")
    ]
    assert asyncio.run(download.callback()) is None


def test_members_are_invited_changed_and_removed_and_the_last_owner_stays(look, letters):
    page = account_page(look(MIA), "members")
    section = page.open_section
    press(page, "Invite")
    assert "Give an e-mail address first." in texts(section.said)
    section.email.value_input = "new@example.org"
    section.role.value = "reviewer"
    press(page, "Invite")
    assert "acme" in letter_to(letters, "new@example.org").text()
    told = {row[0]: row[1:3] for row in lines(page, "Members").rows}
    assert told["new@example.org"] == ["reviewer", "invited"]
    place = list(told).index("new@example.org")
    lines(page, "Members").press(place)
    section.new_role.value = "developer"
    press(page, "Change the role")
    assert lines(page, "Members").rows[place][1] == "developer"
    lines(page, "Members").press(place)
    press(page, "Remove …")
    section.confirmation.button.clicks += 1
    assert "new@example.org has no part in the account any more." in texts(section.said)
    place = [row[0] for row in lines(page, "Members").rows].index(MIA)
    lines(page, "Members").press(place)
    section.new_role.value = "reviewer"
    press(page, "Change the role")
    assert "is the only owner" in texts(section.said)
    assert not account_page(look(LEO), "members").__panel__().select(MarkTable)
    assert "Not for your role, reviewer" in texts(account_page(look(RITA), "members").__panel__())


def test_a_key_is_made_shown_once_changed_and_revoked(look):
    page = account_page(look(LEO), "keys")
    section = page.open_section
    assert "No keys" in texts(page.__panel__())
    section.called.value_input = "robot"
    section.cap.value_input = "2.5"
    section.ends.value = 30
    press(page, "Make a key")
    secret = re.search(r"<pre[^>]*>(\S+)</pre>", texts(section.said))[1]
    with steelyard.connect(section.client.url, api_key=secret) as client:
        assert client.capabilities().models
    [row] = lines(page, "API keys").rows
    assert (row[0], row[2], row[3], row[5]) == ("robot", "inference", LEO, "0 of 2.5 USD")
    lines(page, "API keys").press(0)
    section.new_name.value_input = "robot two"
    section.new_cap.value_input = ""
    press(page, "Change the key")
    assert lines(page, "API keys").rows[0][:1] == ["robot two"]
    assert lines(page, "API keys").rows[0][5] == "no cap"
    lines(page, "API keys").press(0)
    press(page, "Revoke …")
    section.confirmation.button.clicks += 1
    assert "The key robot two is revoked." in texts(section.said)
    assert "No keys" in texts(page.__panel__())
    section.revoked.value = True
    lines(page, "API keys").press(0)
    assert "Change the key" not in buttons(page.__panel__())
    section.scope_of.value = "read"
    assert section.cap.disabled


def test_a_developer_leaves_the_keys_of_others_alone(look):
    owners = account_page(look(MIA), "keys").open_section
    owners.called.value_input = "of mia"
    asyncio.run(owners._make())
    page = account_page(look(LEO), "keys")
    lines(page, "API keys").press(0)
    assert "changes its own keys" in texts(page.__panel__())
    assert "Not for your role, billing" in texts(account_page(look(BEA), "keys").__panel__())


def test_other_sessions_are_ended_and_what_was_done_is_in_the_audit(look):
    other, session = look(MIA), look(MIA)
    page = account_page(session, "sessions")
    rows = lines(page, "Your sessions").rows
    here = next(n for n, row in enumerate(rows) if "this one" in row[0])
    lines(page, "Your sessions").press(here)
    assert "End the session" not in buttons(page.__panel__())
    lines(page, "Your sessions").press(1 - here if here < 2 else 0)
    press(page, "End the session")
    assert "The session is ended." in texts(page.open_section.said)
    press(page, "End all others")
    assert len(lines(page, "Your sessions").rows) == 1
    with pytest.raises(NotSignedInError):
        other.client.auth.session()
    audit = account_page(session, "audit")
    assert "sessions: ended" in texts_of(audit.__panel__())
    assert "Not for your role" in texts(account_page(look(LEO), "audit").__panel__())


async def until(is_so):
    """Wait for something that threads bring about."""
    ends_at = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < ends_at
        await asyncio.sleep(0.01)


def test_what_is_sensitive_asks_for_a_code_and_is_then_done_once(look, letters):
    async def make():
        session = look(MIA, ago=_LONG_AGO_S)
        page = account_page(session, "keys")
        await until_done()
        section, confirm = page.open_section, session.confirm
        told = []
        confirm.on_confirmed = lambda: told.append(session.client.session)
        before = session.client.session
        create = HeldCall(session.client.account.create_key)
        create.go_on()
        section.client = Instead(
            session.client, account=Instead(session.client.account, create_key=create)
        )
        section.called.value_input = "sensitive"
        press(page, "Make a key")
        await until(lambda: confirm.is_open)
        shown = confirm.shown
        code = code_of(await asyncio.to_thread(letter_to, letters, MIA))
        await until(lambda: "is on its way" in shown.said.object)
        shown.code.value_input = "WRONG-00"
        await shown.give()
        assert "invalid_code" in texts(shown.problem)
        assert confirm.is_open
        shown.code.value_input = code
        await shown.give()
        await until_done()
        assert not confirm.is_open
        assert not shown.dialog.open
        assert create.n_calls == 2
        assert told == [session.client.session]
        assert told != [before]
        assert "The key sensitive is made." in texts(section.said)
        assert "sensitive" in [row[0] for row in lines(page, "API keys").rows]

    asyncio.run(make())


def test_who_gives_no_code_changes_nothing_and_is_told(look, letters):
    async def leave():
        session = look(MIA, ago=_LONG_AGO_S)
        page = account_page(session, "keys")
        await until_done()
        section, confirm = page.open_section, session.confirm
        n_keys = len(section.keys.data)
        section.called.value_input = "never made"
        # Two that are sensitive at once have one dialog.
        both = [asyncio.create_task(confirm(section.client.members.invite, "x@y.org", "owner"))]
        press(page, "Make a key")
        await until(lambda: confirm.is_open)
        confirm.shown.dialog.open = False  # by Escape
        with pytest.raises(ConfirmSignInError):
            await both[0]
        await until_done()
        assert "confirm_sign_in" in texts(section.said)
        assert not confirm.is_open
        await section.keys.refresh()
        assert len(section.keys.data) == n_keys

    asyncio.run(leave())


def test_a_secret_that_nobody_sees_any_more_is_told(look, monkeypatch):
    said = []
    monkeypatch.setattr(corner, "say_failure", said.append)
    page = account_page(look(MIA), "keys")
    section = page.open_section
    section.called.value_input = "late"
    page.close()
    asyncio.run(section._make())
    assert "Revoke it and make another" in said[0]


def test_somebody_with_several_accounts_goes_to_another_by_a_link(look, state, account):
    session = look(MIA, page="usage")
    begin_session(state, MIA, at=time.time(), role="owner")  # in the server's own account too
    client = VisitorClient(ClientOptions(session.client.url, session=session.client.session))
    app = App(client)
    app.session.param.update(account=account, page="account")
    app.view()
    assert app._account_button.visible
    assert "acme" in app._account_button.label
    app._accounts.open()
    told = texts_of(app._accounts.__panel__())
    assert 'href="?page=account&amp;account=local"' in told
    assert f'account={account}" aria-current="true"' in told
    app.press("Escape")
    assert not app._accounts.is_open

    for none_of_theirs in ("acct_other", "no id"):
        other = App(VisitorClient(ClientOptions(session.client.url, session=client.session)))
        other.session.account = none_of_theirs
        other.view()
        assert "You have no part in the account" in texts_of(other._place)
        press_in(other._place, "Go to your first account")
        assert other.session.account == ""
        assert other.session.who.account_id in {account, "local"}
        other.session.client.close()
    client.close()
