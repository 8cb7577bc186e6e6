"""A server that goes away under an open page: a banner, nothing to press, and all well after."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import steelyard
from support.browsing import visit

pytest.importorskip("panel", reason="needs the workbench extra")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home):
    running = steelyard.embed(home, engine="hashing")
    yield running
    running.stop()


def test_a_server_that_goes_away_and_comes_back(quiet_page, server, home):
    port = int(server.url.rsplit(":", 1)[1])
    visit(quiet_page, "page=playground")
    context = quiet_page.get_by_label("Context")
    context.fill("Unsent words.")
    quiet_page.get_by_role("button", name="Ask", exact=True).click()
    expect(quiet_page.get_by_text("input tokens")).to_be_visible()

    server.stop()
    banner = quiet_page.get_by_text("The server does not answer.")
    expect(banner).to_be_visible()
    expect(context).to_be_disabled()
    expect(quiet_page.get_by_role("button", name="Ask", exact=True)).to_be_disabled()
    expect(context).to_have_value("Unsent words.")

    with steelyard.embed(home, engine="hashing", port=port):
        expect(banner).to_be_hidden()
        expect(context).to_be_enabled()
        expect(context).to_have_value("Unsent words.")
        quiet_page.get_by_role("button", name="Ask", exact=True).click()
        expect(quiet_page.get_by_text("input tokens")).to_be_visible()
