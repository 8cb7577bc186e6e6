"""The pages of people and money: each role's view and actions, and codes for sensitive ones."""

from __future__ import annotations

import asyncio
import queue
import time
from decimal import Decimal
from types import SimpleNamespace

import msgspec
import pytest
from sqlalchemy import insert

import steelyard
from steelyard.accounts.service import AccountService
from steelyard.billing.tables import provider_events
from steelyard.billing.wire import NewPurchase, TopUp
from steelyard.client import Client, ClientOptions
from steelyard.errors import (
    AccountsOffError,
    NotSignedInError,
    PayloadTooLargeError,
)
from steelyard.ledger.money import NANO
from steelyard.people import mail_service
from steelyard.people.roles import ROLES as PEOPLE_ROLES
from steelyard.storage import open_state
from support.accounts.console import account_with_rows, begin_session, code_of
from support.browser.shown_parts import (
    buttons,
    choices,
    lines,
    named,
    opened,
    press,
    press_in,
    refusals,
    texts,
    texts_of,
)
from support.servers.held_calls import HeldCall, Instead, until_done
from support.waiting import next_turn, until, wait_until

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.frame.app import App
from steelyard_workbench.frame.navigation import ENTRIES, entries_for, make_page, sections_for
from steelyard_workbench.frame.visitors import VisitorClient
from steelyard_workbench.kit import corner
from steelyard_workbench.kit.components import files
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.account.page import AccountPage
from steelyard_workbench.pages.home.page import HomePage
from steelyard_workbench.pages.operator.page import OperatorPage
from steelyard_workbench.pages.usage.page import UsagePage, how_to_pay
from steelyard_workbench.parts.balance import usd
from steelyard_workbench.parts.live.view import from_text as live_view

MIA, LEO, BEA, RITA, SAM = (f"{name}@example.org" for name in ("mia", "leo", "bea", "rita", "sam"))
REFUND = {"id": "refund", "kind": "binary", "question": "Is money asked back?"}
ROLES = {MIA: "owner", LEO: "developer", BEA: "billing", RITA: "reviewer", SAM: "developer"}
OPERATOR = "operator"
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
        with steelyard.embed(
            home,
            engine="hashing",
            accounts="on",
            operators=SAM,
            referral_usd="3",
            prices="hashing=12",
        ) as running:
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
    """Make the view of a person's browser."""
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


def account_page(session, section="profile"):
    session.param.update(page="account", view=section)
    return opened(AccountPage, session)


def letter_to(letters, email):
    """The next letter to a person."""
    while (letter := letters.get(timeout=60)).to != email:
        pass
    return letter


def raise_(error):
    raise error


def test_the_menu_has_the_pages_of_a_role(look):
    everything = [entry.slug for entry in ENTRIES]
    found = {email: [entry.slug for entry in entries_for(look(email).who)] for email in ROLES}
    console = {"account", "usage", "operator"}
    assert {entry.slug for entry in entries_for(None)} == set(everything) - console
    assert found[SAM] == everything
    assert found[MIA] == found[LEO] == everything[:-1]
    assert found[BEA] == ["home", "usage", "account"]
    assert found[RITA] == ["home", "datasets", "versions", "map", "review", "labeling", "account"]
    menus = {email: [section.title for section in sections_for(look(email).who)] for email in ROLES}
    assert menus[SAM] == menus[LEO] == ["Home", "Ask", "Data", "Models", "Watch", "Settings"]
    assert menus[BEA] == ["Home", "Usage and billing", "Account"]
    assert menus[RITA] == ["Home", "Data", "Account"]


@pytest.mark.parametrize("n_rows", [0, 2, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("role", [*PEOPLE_ROLES, OPERATOR])
def test_every_page_opens_for_every_role_and_fetches_only_readable_parts(
    server, state, role, n_rows
):
    """Every page of the workbench, those that are in no menu of the role too."""
    account_id, dataset = account_with_rows(server.url, state, n_rows)
    email = f"{role}{n_rows}@example.org"
    if role == OPERATOR:  # who is a member of another account
        email, role, dataset = SAM, ROLES[SAM], ""
    token = begin_session(state, email, at=time.time(), account_id=account_id, role=role)
    with Client(ClientOptions(server.url, session=token, timeout_s=300.0)) as client:
        session = Session(client, who=client.auth.session())
        refused = refusals(session)
        for entry in ENTRIES:
            session.param.update(page=entry.slug, dataset=dataset)
            page = make_page(entry.slug, session)
            page.open()
            shown = texts(page.__panel__())
            is_theirs = entry.is_for(session.who)
            assert ("does not use this page" in shown) == (not is_theirs)
            assert [part.problem for part in page.parts] == [None] * len(page.parts), entry.slug
            page.close()
    assert refused == []


def test_a_reviewer_first_sees_the_rows_that_wait_for_them(look):
    owner, session = look(MIA), look(RITA, reviewer=RITA, page="home")
    row = {"decisions": [REFUND], "targets": {"refund": {"yes": 1.0}}}
    rows = [{**row, "context": f"Ticket {number}."} for number in range(4)]
    made = owner.client.datasets.create("support_triage", rows)
    draft = owner.client.drafts.create(made.id)
    owner.client.drafts.assign(draft.id, [RITA])
    page = opened(HomePage, session)
    assert "4 rows in support" in texts(page.__panel__())
    buttons(page.__panel__())["Start"].clicks += 1
    assert (session.page, session.draft) == ("review", draft.id)
    refused = refusals(session)
    for name in ("review", "datasets", "versions", "labeling", "map"):
        session.param.update(page=name, dataset=made.id)
        page = opened(lambda session, name=name: make_page(name, session), session)
        shown = page.__panel__()
        assert not {"Add rows", "Rename", "Delete", "Train on it"} & {*choices(shown)}
        asyncio.run(next_turn())
        for button in buttons(shown).values():
            if button.visible and not button.disabled:
                button.clicks += 1
        asyncio.run(next_turn())
        page.close()
    assert refused == []
    # No model may be asked, and no rows assigned.
    session.param.update(page="review", draft=draft.id)
    desk = opened(lambda session: make_page("review", session), session).desk
    assert "Suggest" not in desk.beside.choice.options
    desk.beside.choice.value = "Reviewers"
    assert not {"Assign", "Hand over"} & {*buttons(desk.__panel__())}
    # Of rows that she labels apart, she sees no counts by label.
    rows = [{**row, "context": f"Mail {n}.", "metadata": {}} for n in range(8)]
    for row in rows[4:]:
        row["metadata"] = {"by": "expert"}
    apart = owner.client.drafts.create(owner.client.datasets.create("known", rows).id)
    owner.client.drafts.assign(apart.id, [RITA], known_share=0.5)
    session.param.update(page="review", draft=apart.id)
    desk = opened(lambda session: make_page("review", session), session).desk
    assert "You label rows of this dataset apart from others" in texts(desk.__panel__())


def test_without_accounts_it_says_how_to_turn_them_on(server):
    client = Client(ClientOptions(server.url))
    client.auth = SimpleNamespace(session=lambda: raise_(AccountsOffError("Off.")))
    page = opened(AccountPage, Session(client, page="account"))
    assert "steelyard up --accounts on" in texts(page.__panel__())
    client.close()
    page = opened(AccountPage, Session(server.client, page="account"))
    assert "STEELYARD_API_KEY" in texts(page.__panel__())
    with Client(ClientOptions(server.url, session="")) as nobody:
        page = opened(AccountPage, Session(nobody, page="account"))
        assert "You are not signed in" in texts(page.__panel__())


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
    section.store.value = "features"
    press(page, "Set it")
    assert "The account stores answers without their texts." in texts(section.said)
    section.store.value = "on"
    press(page, "Set it")
    assert session.client.account.get().store == "on"
    assert section.export()[:2] == b"PK"
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
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    section = account_page(look(MIA)).open_section
    with pytest.raises(PayloadTooLargeError, match="export_to in Python"):
        section.export()


def test_members_are_invited_changed_and_removed_and_the_last_owner_stays(look, letters):
    page = account_page(look(MIA), "members")
    section = page.open_section
    press(page, "Invite")
    assert "Write an e-mail address." in texts(section.said)
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
    assert "new@example.org is no longer a member of the account." in texts(section.said)
    place = [row[0] for row in lines(page, "Members").rows].index(MIA)
    lines(page, "Members").press(place)
    section.new_role.value = "reviewer"
    press(page, "Change the role")
    assert "is the only owner" in texts(section.said)
    assert not account_page(look(LEO), "members").__panel__().select(MarkTable)
    parts = {email: account_page(look(email), "audit").choice for email in ROLES}
    assert [len(parts[email].options) for email in (MIA, LEO, BEA, RITA)] == [5, 4, 3, 2]


def test_a_key_is_made_shown_once_changed_and_revoked(look):
    page = account_page(look(LEO), "keys")
    section = page.open_section
    assert "No keys" in texts(page.__panel__())
    section.called.value_input = "robot"
    section.cap.value_input = "2.5"
    section.ends.value = 30
    section.store.value = "features"
    press(page, "Make a key")
    [secret] = [part.text for part in section.said.select(CopyText)]
    with steelyard.connect(section.client.url, api_key=secret) as client:
        assert client.capabilities().models
    [row] = lines(page, "API keys").rows
    assert (row[0], row[2], row[3], row[5]) == ("robot", "inference", LEO, "0 of 2.5 USD")
    assert section.keys.data[0].store == "features"
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
    assert "only their own keys" in texts(page.__panel__())


def test_other_sessions_are_ended_and_actions_are_in_the_audit(look):
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


def test_a_sensitive_action_asks_for_a_code_and_is_done_once(look, letters):
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
        assert told == [session.client.session] != [before]
        assert "The key sensitive is made." in texts(section.said)
        assert "sensitive" in [row[0] for row in lines(page, "API keys").rows]

    asyncio.run(make())


def test_without_a_code_nothing_changes_and_a_message_is_shown(look, letters):
    async def leave():
        session = look(MIA, ago=_LONG_AGO_S)
        page = account_page(session, "keys")
        await until_done()
        section, confirm = page.open_section, session.confirm
        n_keys = len(section.keys.data)
        section.called.value_input = "never made"
        press(page, "Make a key")
        await until(lambda: confirm.is_open)
        confirm.shown.dialog.open = False  # by Escape
        await until_done()
        assert "No code was entered, so nothing was changed." in texts(section.said)
        assert not confirm.is_open
        await section.keys.refresh()
        assert len(section.keys.data) == n_keys

    asyncio.run(leave())


def test_a_lost_secret_is_reported(look, monkeypatch):
    said = []
    monkeypatch.setattr(corner, "say_failure", said.append)
    page = account_page(look(MIA), "keys")
    section = page.open_section
    section.called.value_input = "late"
    page.close()
    asyncio.run(section._make())
    assert "Revoke it and make another" in said[0]


def test_a_user_of_several_accounts_goes_to_another_by_a_link(look, state, account):
    session = look(MIA, page="usage")
    begin_session(state, MIA, at=time.time(), role="owner")  # in the server's own account too
    client = VisitorClient(ClientOptions(session.client.url, session=session.client.session))
    app = App(client)
    app.session.param.update(account=account, page="account")
    app.view()
    assert app.account_button.visible
    assert "acme" in app.account_button.label
    app.accounts.open()
    told = texts_of(app.accounts.__panel__())
    assert 'href="?page=account&amp;account=local"' in told
    assert f'account={account}" aria-current="true"' in told
    app.press("Escape")
    assert not app.accounts.is_open

    other = App(client)
    other.session.account = "no id"
    other.view()
    assert "You are not a member of the account" in texts_of(other.place)
    press_in(other.place, "Go to your first account")
    assert other.session.account == ""
    assert other.session.who.account_id in {account, "local"}
    client.close()


def usage_page(session, view=""):
    session.param.update(page="usage", view=view)
    return opened(UsagePage, session)


@pytest.fixture(scope="module")
def spent(server, state, account):
    """Decisions that were paid for: their cost, as the ledger has it."""
    accounts = AccountService(state, accounts_enabled=True)
    accounts.add_credit(account, 5 * NANO)
    asked = [{"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}]
    secret = accounts.create_key(account=account, name="shop").secret
    with steelyard.connect(server.url, api_key=secret) as client:
        for n in range(3):
            client.decide(f"a ticket {n}", asked, store=True)
        return client.account.usage().total.cost_usd


def test_spending_is_shown_by_day_key_and_model_and_opens_its_calls(look, spent):
    session = look(LEO)
    page = usage_page(session)
    told = texts(page.__panel__())
    assert f"{usd(spent)} in the last 30 days, for 3 calls" in told
    assert "for the roles owner and billing" in told
    days = lines(page, "Cost by day")
    assert [row[1:3] for row in days.rows] == [[usd(spent), "3"]]
    days.press(0)
    view = live_view(session.query)
    assert session.page == "live"
    assert (view.rows.until - view.rows.since, view.window_s) == (86_400, 30 * 86_400)
    entries = session.client.decision_log(**view.log_query(time.time())).data
    assert len(entries) == 3

    page = usage_page(session, "key-7")
    assert page.spending.by.value == "key"
    lines(page, "Cost by key").press(0)
    view = live_view(session.query)
    assert (view.rows.name, session.page) == ("of the key shop", "live")
    asked = view.log_query(time.time())
    assert len(session.client.decision_log(**asked).data) == 3
    assert session.client.decision_log(**{**asked, "key": "key_other"}).data == []
    session.page = "usage"
    page = usage_page(session, "key-7")
    page.spending.by.value = "model"
    assert session.view == "model-7"
    lines(page, "Cost by model").press(0)
    assert live_view(session.query).model == "hashing"
    session.page = "usage"
    session.view = "family-90"
    assert (page.spending.by.value, page.spending.span.value) == ("family", 90)
    assert "Of no model line" in texts(page.__panel__())
    # Who has to do with money reads no calls.
    page = usage_page(look(BEA))
    assert not [one for one in page.__panel__().select(MarkTable) if one.label == "Cost by day"]


def test_days_without_cost_and_roles_without_money_have_a_text(look, state):
    assert "Not for your role, reviewer" in texts(usage_page(look(RITA)).__panel__())
    page = usage_page(look(LEO))
    nothing = page.session.client.account.usage(since=1.0, until=86_400.0)
    assert "Nothing was charged" in texts_of(page.spending.show(nothing))


def test_credit_is_bought_and_its_receipt_handed_over(look, server):
    page = usage_page(look(BEA))
    bought = page.purchases
    assert "No purchases yet" in texts(page.__panel__())
    bought.amount.value = "1"
    press(page, "Buy credit")
    assert "give 5 to 10000" in texts(bought.said)
    bought.amount.value = "20"
    press(page, "Buy credit")
    [purchase] = bought.purchases.data
    assert f"name `{purchase.id}` in it" in texts(bought.said)
    assert lines(page, "Purchases").rows[0][1:3] == ["$20.00", "waits for its payment"]
    lines(page, "Purchases").press(0)
    assert f"name `{purchase.id}`" in texts(bought.opened)
    asyncio.run(page.look())
    look(SAM).client.operator.confirm_purchase(purchase.id)
    asyncio.run(page.look())
    assert lines(page, "Purchases").rows[0][2] == "paid"
    assert "$20.00" in texts(page.__panel__())
    lines(page, "Purchases").press(0)
    [receipt] = [one for one in bought.opened.select() if hasattr(one, "callback")]
    assert b"<html" in asyncio.run(receipt.callback()).read()
    [ledger] = [one for one in named(page.__panel__(), "Ledger as CSV") if hasattr(one, "callback")]
    assert b"purchase" in asyncio.run(ledger.callback()).read()


def test_a_checkout_is_a_link_of_the_web_alone(look, server):
    purchase = look(MIA).client.billing.buy("5").purchase
    by_card = msgspec.structs.replace(purchase, provider="stripe")
    for url, is_link in (("https://pay.test/?a=1&b", True), ("javascript:alert(1)", False)):
        told = texts_of(how_to_pay(NewPurchase(purchase=by_card, checkout_url=url)))
        assert ("<a href" in told) == is_link
    assert "https://pay.test/?a=1&amp;b" in texts_of(
        how_to_pay(NewPurchase(purchase=by_card, checkout_url="https://pay.test/?a=1&b"))
    )


def test_a_top_up_is_set_and_ended(look):
    page = usage_page(look(MIA))
    top_ups = page.top_ups
    press(page, "Set")
    assert "Write below which balance to buy." in texts(top_ups.said)
    top_ups.threshold.value, top_ups.amount.value, top_ups.cap.value = "0.01", "10", "5"
    press(page, "Set")
    assert "is less than one purchase" in texts(top_ups.said)
    top_ups.cap.value = "50"
    press(page, "Set")
    assert "Buys $10.00 when less than $0.01 is available" in texts(page.__panel__())
    off = TopUp(threshold_usd="1", amount_usd="5", monthly_cap_usd="5", is_on=False, failures=3)
    billing = msgspec.structs.replace(top_ups.billing.data, top_up=off)
    assert "after 3 failures" in texts(top_ups._show(billing))
    press(page, "Turn off")
    assert "Automatic top-up is off." in texts(page.__panel__())
    assert not top_ups.end.visible


def test_a_referral_code_is_shown_and_anothers_redeemed(look, state, account):
    page = usage_page(look(MIA))
    referrals = page.referrals
    told = texts_of(page.__panel__())
    assert "gets $3.00 with" in told
    press(page, "Redeem")
    assert "Write a code." in texts(referrals.said)
    referrals.code.value = referrals.referral.data.code
    press(page, "Redeem")
    assert "referral_refused" in texts(referrals.said)
    off = msgspec.structs.replace(referrals.referral.data, referral_usd="0")
    assert "Referrals are off" in texts(referrals._show(off))


def test_operators_see_every_account_and_add_credit(look, account):
    page = opened(OperatorPage, look(SAM, page="operator"))
    accounts = page.accounts
    found = [row[0] for row in lines(page, "The accounts").rows]
    assert {"acme", "local"} <= set(found)
    lines(page, "The accounts").press(found.index("acme"))
    press(page, "Add credit")
    assert "Write an amount." in texts(accounts.said)
    accounts.amount.value = "-1"
    press(page, "Add credit")
    assert "invalid_request" in texts(accounts.said)
    before = accounts.accounts.found[found.index("acme")].wallet
    accounts.amount.value = "7"
    press(page, "Add credit")
    now = accounts.accounts.found[found.index("acme")].wallet
    assert Decimal(now.available_usd) - Decimal(before.available_usd) == 7
    assert f"acme has {usd(now.available_usd)} available." in texts(accounts.said)
    assert "No backup yet." in texts(page.__panel__())
    press(page, "Back up now")
    wait_until(lambda: page.client.operator.backups().data)
    asyncio.run(page.look())
    assert "Last backed up just now." in texts(page.__panel__())
    assert "No connected models" in texts(page.__panel__())
    refused = opened(OperatorPage, look(MIA, page="operator"))
    assert "steelyard account operator ADDRESS" in texts(refused.__panel__())


def test_operators_confirm_transfers_and_put_notices_away(look, state):
    purchase = look(MIA).client.billing.buy("6").purchase
    page = opened(OperatorPage, look(SAM, page="operator"))
    assert "No notice is parked." in texts(page.__panel__())
    press(page, "Confirm the transfer")
    page.transfers.purchase.value = purchase.id
    press(page, "Confirm the transfer")
    assert f"{purchase.id} of $6.00 is paid." in texts_of(page.transfers.said).replace("\\", "")
    event = {
        "provider": "manual", "id": "evt_1", "purchase_id": purchase.id, "received_at": 1.0,
        "outcome": "parked", "reason": "another amount", "notice": b"{}",
    }  # fmt: skip
    state.write_now(lambda connection: connection.execute(insert(provider_events).values(event)))
    page = opened(OperatorPage, page.session)
    lines(page, "Parked notices").press(0)
    assert "another amount" in texts(page.notices.opened)
    press(page, "Put away")
    assert "No notice is parked." in texts(page.__panel__())
