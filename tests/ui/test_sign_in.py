"""Signing in at the workbench: each browser is a person of its own, and no script sees its session."""

from __future__ import annotations

import queue
import re
import time
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import expect
from sqlalchemy import update

import steelyard
from steelyard.accounts.service import AccountService
from steelyard.cli.workbench import workbench_note
from steelyard.ledger.money import NANO
from steelyard.people import mail_service
from steelyard.people.store import must_rotate
from steelyard.people.tables import sessions
from steelyard.storage import open_state
from support.accounts.console import begin_session, code_of
from support.accounts.identity import CLIENT, SECRET, identity_provider
from support.browser.browsing import SLOWLY
from support.datasets.dataset_rows import make_rows
from support.waiting import wait_until

pytest.importorskip("panel", reason="needs the workbench extra")
pytest.importorskip("authlib", reason="the extra oidc is not installed")
pytest.importorskip("joserfc", reason="the extra oidc is not installed")
pytest.importorskip("webauthn", reason="the extra passkeys is not installed")
axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

MIA, RITA, SAM = (f"{name}@example.org" for name in ("mia", "rita", "sam"))


@pytest.fixture(scope="module")
def letters():
    return queue.SimpleQueue()


@pytest.fixture(scope="module")
def identity():
    """An identity provider of another site than the workbench's: of another name of this machine."""
    with identity_provider(time.time) as running:
        running.url = running.url.replace("127.0.0.1", "localhost")
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory, letters, identity):
    """A server with accounts, an owner and a reviewer; its terminal's letters are kept."""
    home = tmp_path_factory.mktemp("home")
    given = {
        "oidc_issuer": identity.url,
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SECRET,
        "accounts": "on",
        "dataset_min_rows": 1,
        "operators": SAM,
        "prices": "hashing=12",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mail_service, "write_to_terminal", letters.put)
        with steelyard.embed(home, engine="hashing", **given) as running:
            state = open_state(f"sqlite:///{home / 'state.sqlite'}")
            accounts = AccountService(state, accounts_enabled=True)
            acme = accounts.create_account("acme").id
            accounts.add_credit(acme, NANO)
            begin_session(state, MIA, at=1.0)
            for account in ("local", acme):
                begin_session(state, SAM, at=1.0, account_id=account)
            begin_session(state, RITA, at=1.0, role="reviewer")
            state.close()
            yield running


@pytest.fixture(scope="module")
def workbench(server, workbench):
    """A workbench on the home of the server, whose provider may lead back to it."""
    with workbench_note(server.home, workbench.url):
        yield workbench


def sign_in(page, letters, email):
    """Type an address, and the code of its letter, by keys alone."""
    expect(page.get_by_label("E-mail address")).to_be_focused()
    page.keyboard.type(email)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Code", exact=True)).to_be_focused()
    give_code(page, letters, email)
    page.keyboard.press("Enter")


def give_code(page, letters, email):
    """Type the code of the next letter."""
    letter = letters.get(timeout=SLOWLY / 1000)
    assert letter.to == email
    page.get_by_label("Code", exact=True).fill(code_of(letter))


@pytest.mark.slow
def test_two_browsers_are_two_people(browser, quiet_page, server, letters, workbench):
    dataset = server.client.datasets.create("tickets", make_rows(4))
    page, where = quiet_page, f"{workbench.url}/?page=datasets&dataset={dataset.id}"
    page.goto(where)
    expect(page.get_by_role("heading", name="Sign in", level=1)).to_be_visible(timeout=SLOWLY)
    expect(page.get_by_text("printed in the terminal")).to_be_visible()
    assert axe_sync.Axe().run(page).response["violations"] == []
    sign_in(page, letters, MIA)
    # Where one was: the page of the address.
    expect(page.get_by_role("heading", name="tickets")).to_be_visible(timeout=SLOWLY)
    expect(page.get_by_role("button", name=f"Sign out {MIA}")).to_be_visible(timeout=SLOWLY)

    [cookie] = [one for one in page.context.cookies() if one["name"].startswith("steelyard_w")]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert cookie["value"] not in page.evaluate("document.cookie")
    shown = httpx.get(where, cookies={cookie["name"]: cookie["value"]}, timeout=60).text
    # What Bokeh tells the page of its request is packed: looked into, not searched for.
    token = re.search(r'"token":"([^"]+)"', shown)[1]
    from bokeh.util.token import get_token_payload

    assert cookie["value"] not in str(get_token_payload(token))

    with browser.new_context() as context:
        other = context.new_page()
        other.goto(where)
        expect(other.get_by_role("heading", name="Sign in", level=1)).to_be_visible(timeout=SLOWLY)
        expect(other.get_by_text("tickets")).to_have_count(0)

    # The session ends elsewhere, and whoever signs in again is where they were.
    with httpx.Client(base_url=server.url, headers={"X-Steelyard-Console": "1"}) as http:
        http.headers["Cookie"] = f"steelyard_session={cookie['value']}"
        assert http.post("/v1/auth/sign-out").status_code == 200
    page.keyboard.press("g")
    page.keyboard.press("f")
    expect(page.get_by_text("Your session has ended.")).to_be_visible(timeout=SLOWLY)
    sign_in(page, letters, MIA)
    expect(page.get_by_role("heading", name="Model lines", level=1)).to_be_visible(timeout=SLOWLY)
    page.get_by_role("button", name=f"Sign out {MIA}").click()
    # The page shows the form before the browser has forgotten the session and loads it anew.
    wait_until(lambda: cookie["name"] not in {one["name"] for one in page.context.cookies()})
    expect(page.get_by_role("heading", name="Sign in", level=1)).to_be_visible(timeout=SLOWLY)


@pytest.mark.slow
def test_a_changed_role_signs_no_user_out(quiet_page, server, workbench):
    state = open_state(f"sqlite:///{server.home / 'state.sqlite'}")
    token = begin_session(state, MIA, at=time.time())
    state.write_now(lambda connection: must_rotate(connection, MIA))
    state.close()
    page = quiet_page
    cookie = {
        "name": f"steelyard_workbench_{urlsplit(workbench.url).port}",
        "value": token,
        "url": workbench.url,
    }
    page.context.add_cookies([cookie])

    def kept():
        values = {entry["name"]: entry["value"] for entry in page.context.cookies()}
        return values[cookie["name"]] != token

    # The token is renewed before the browser has run the page, and could hear of it.
    page.route("**/bokeh.min.js*", lambda route: (page.wait_for_timeout(5_000), route.continue_()))
    page.goto(f"{workbench.url}/?page=datasets")
    expect(page.get_by_role("button", name=f"Sign out {MIA}")).to_be_visible(timeout=SLOWLY)
    wait_until(kept)


@pytest.mark.slow
def test_a_key_is_made_with_a_code_and_its_spending_leads_to_its_calls(quiet_page, server, letters):
    page = quiet_page
    page.goto(f"{page.home}/?page=account&view=keys&account=local")
    sign_in(page, letters, SAM)
    # Another account is a link, and its page a new one.
    expect(page.get_by_role("heading", name="Make a key")).to_be_visible(timeout=SLOWLY)
    page.get_by_role("button", name="Account: local").click()
    page.get_by_role("link", name="acme").click()
    expect(page.get_by_role("button", name="Account: acme")).to_be_visible(timeout=SLOWLY)
    page.get_by_role("button", name="Keys", exact=True).click()
    expect(page.get_by_text("No keys.")).to_be_visible()
    assert axe_sync.Axe().run(page).response["violations"] == []

    # The code of the sign-in was given too long ago.
    state = open_state(f"sqlite:///{server.home / 'state.sqlite'}")
    state.write_now(
        lambda connection: connection.execute(update(sessions).values(confirmed_at=1.0))
    )
    state.close()
    page.get_by_label("Name", exact=True).fill("robot")
    page.get_by_role("button", name="Make a key", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("is on its way to")).to_be_visible(timeout=SLOWLY)
    expect(page.get_by_label("Code", exact=True)).to_be_focused()
    assert axe_sync.Axe().run(page).response["violations"] == []
    give_code(page, letters, SAM)
    page.keyboard.press("Enter")
    expect(page.get_by_text("The key robot is made.")).to_be_visible(timeout=SLOWLY)
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="robot", exact=True)).to_be_visible()
    secret = page.get_by_label("the secret", exact=True).inner_text()
    with steelyard.connect(server.url, api_key=secret) as client:
        client.decide(
            "a ticket", [{"id": "q", "kind": "binary", "question": "Money back?"}], store=True
        )

    # The session that the code gave is the browser's.
    page.reload()
    expect(page.get_by_role("button", name="robot", exact=True)).to_be_visible(timeout=SLOWLY)
    assert secret not in page.content()
    page.get_by_role("button", name="Watch", exact=True).click()
    page.get_by_role("tab", name="Usage and billing").click()
    expect(page.get_by_text("for 1 calls and jobs")).to_be_visible(timeout=SLOWLY)
    expect(page.locator(".bk-Canvas, canvas").first).to_be_attached()
    assert axe_sync.Axe().run(page).response["violations"] == []
    page.get_by_role("button", name="Show data").click()
    day = time.strftime("%Y-%m-%d", time.gmtime())
    page.get_by_role("button", name=day).click()
    expect(page.get_by_text(f"Only those made on {day} (UTC).")).to_be_visible(timeout=SLOWLY)
    page.get_by_role("button", name="Settings", exact=True).click()
    page.get_by_role("tab", name="Operator").click()
    expect(page.get_by_role("button", name="acme", exact=True)).to_be_visible(timeout=SLOWLY)
    assert axe_sync.Axe().run(page).response["violations"] == []


@pytest.mark.slow
def test_a_ticket_is_of_the_workbenchs_own_page_and_of_one_use(server, workbench):
    own = {"Origin": workbench.url, "X-Steelyard-Console": "1"}
    for headers in (own, {**own, "Origin": "http://evil.example"}, {"X-Steelyard-Console": "1"}):
        answer = httpx.post(f"{workbench.url}/session", headers=headers, content=b"guessed")
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


@pytest.mark.slow
def test_a_passkey_is_added_and_signs_in(quiet_page, letters, workbench):
    page = quiet_page
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    device = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": device})
    # Browsers keep no passkeys for addresses: by the name.
    named = workbench.url.replace("127.0.0.1", "localhost")
    page.goto(f"{workbench.url}/?page=account&view=sessions")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text(f"Open the workbench by its name: {named}.")).to_be_visible()
    page.goto(f"{named}/?page=account&view=sessions")
    sign_in(page, letters, MIA)
    expect(page.get_by_text("You have no passkeys.")).to_be_visible()
    page.get_by_label("Name of the passkey").fill("My *laptop*")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("You can sign in with it here")).to_be_visible()
    expect(page.get_by_text("My *laptop* of localhost")).to_be_visible()
    assert axe_sync.Axe().run(page).response["violations"] == []

    page.get_by_role("button", name=f"Sign out {MIA}").click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("button", name=f"Sign out {MIA}")).to_be_visible()
    expect(page.get_by_text(", used ")).to_be_visible()
    page.get_by_role("button", name="Remove My *laptop*").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("You have no passkeys.")).to_be_visible()

    page.get_by_role("button", name=f"Sign out {MIA}").click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("This passkey signs nobody in")).to_be_visible()


@pytest.mark.slow
def test_an_identity_provider_leads_back_signed_in(quiet_page, identity, server, workbench):
    page = quiet_page
    page.goto(f"{workbench.url}/?page=families")
    name = identity.url.removeprefix("http://")
    page.get_by_role("button", name=f"Sign in with {name}").click()
    expect(page.get_by_role("button", name=f"Sign out {MIA}")).to_be_visible()
    expect(page.get_by_role("heading", name="Model lines", level=1)).to_be_visible()
    [cookie] = [one for one in page.context.cookies() if one["name"].startswith("steelyard_w")]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


@pytest.mark.slow
def test_an_identity_is_taken_only_from_the_browser_that_began(identity, server, workbench):
    own = {"Origin": workbench.url, "X-Steelyard-Console": "1"}
    back = {"back": f"{workbench.url}/oidc", "address": "page=home"}
    with httpx.Client(base_url=workbench.url) as browser, httpx.Client() as other:
        begun = browser.post("/oidc", headers=own, json=back)
        assert begun.status_code == 200, begun.text
        led = httpx.get(begun.json()["authorize_url"]).headers["location"]
        for stranger in (other.get(led), browser.get(f"{workbench.url}/oidc?state=&code=a")):
            assert stranger.status_code == 403
            assert "was started in another browser" in stranger.text
        page = browser.get(led)
        assert page.status_code == 200
        assert 'url=./?page=home"' in page.text
        assert any(name.startswith("steelyard_workbench") for name in browser.cookies)
        assert browser.get(led).status_code == 403
        # A person who is let in nowhere, and pages of other sites.
        browser.post("/oidc", headers=own, json=back)
        state = next(one.value for one in browser.cookies.jar if one.name.endswith("_state"))
        told = browser.get("/oidc", params={"state": state, "error": "<b>denied</b>"})
        assert (told.status_code, "&lt;b&gt;denied" in told.text) == (403, True)
        for headers in (own | {"Origin": "http://evil.example"}, {"Origin": workbench.url}):
            assert browser.post("/oidc", headers=headers, json=back).status_code == 403
        for elsewhere in ("http://evil.example/oidc", f"{workbench.url}.evil.example/oidc"):
            refused = browser.post("/oidc", headers=own, json={"back": elsewhere})
            assert refused.status_code == 403
