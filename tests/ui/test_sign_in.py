"""Signing in at the workbench: each browser is somebody of its own, and no script sees its session."""

from __future__ import annotations

import queue
import re

import httpx
import pytest
from playwright.sync_api import expect

import steelyard
from steelyard.people import mail_service
from steelyard.storage import open_state
from support.browsing import SLOWLY
from support.console import begin_session, code_of
from support.dataset_rows import make_rows

pytest.importorskip("panel", reason="needs the workbench extra")
axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

MIA, RITA = "mia@example.org", "rita@example.org"


@pytest.fixture(scope="module")
def letters():
    return queue.SimpleQueue()


@pytest.fixture(scope="module")
def server(tmp_path_factory, letters):
    """A server with accounts, an owner and a reviewer; its terminal's letters are kept."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mail_service, "write_to_terminal", letters.put)
        with steelyard.embed(home, engine="hashing", accounts="on", dataset_min_rows=1) as running:
            state = open_state(f"sqlite:///{home / 'state.sqlite'}")
            begin_session(state, MIA, at=1.0)
            begin_session(state, RITA, at=1.0, role="reviewer")
            state.close()
            yield running


def sign_in(page, letters, email):
    """Type an address, and the code of its letter."""
    field = page.get_by_label("E-mail address")
    field.fill(email)
    page.get_by_role("button", name="Send a code").click()
    letter = letters.get(timeout=SLOWLY / 1000)
    assert letter.to == email
    page.get_by_label("Code", exact=True).fill(code_of(letter))
    page.get_by_role("button", name="Sign in", exact=True).click()


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
    expect(page.get_by_role("button", name=f"Sign out {MIA}")).to_be_visible()

    [cookie] = [one for one in page.context.cookies() if one["name"].startswith("steelyard_w")]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert cookie["value"] not in page.evaluate("document.cookie")
    shown = httpx.get(where, cookies={cookie["name"]: cookie["value"]}).text
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
    expect(page.get_by_role("heading", name="Families", level=1)).to_be_visible(timeout=SLOWLY)
    page.get_by_role("button", name=f"Sign out {MIA}").click()
    expect(page.get_by_role("heading", name="Sign in", level=1)).to_be_visible(timeout=SLOWLY)
    assert not [one for one in page.context.cookies() if one["name"] == cookie["name"]]


def test_a_ticket_is_of_the_workbenchs_own_page_and_of_one_use(server, workbench):
    own = {"Origin": workbench.url, "X-Steelyard-Console": "1"}
    for headers in (own, {**own, "Origin": "http://evil.example"}, {"X-Steelyard-Console": "1"}):
        answer = httpx.post(f"{workbench.url}/session", headers=headers, content=b"guessed")
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
