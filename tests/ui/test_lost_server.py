"""A server that goes away under an open page: a banner, nothing to press, and all well after."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import steelyard
from support.browser.browsing import visit

pytest.importorskip("panel", reason="needs the workbench extra")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home):
    running = steelyard.embed(home, engine="hashing")
    yield running
    running.stop()


@pytest.mark.slow
def test_a_server_that_goes_away_and_comes_back(quiet_page, server, home):
    port = int(server.url.rsplit(":", 1)[1])
    visit(quiet_page, "page=playground")
    context = quiet_page.get_by_label("Text", exact=True)
    context.fill("Unsent words.")
    quiet_page.get_by_role("main").get_by_role("button", name="Ask", exact=True).click()
    expect(quiet_page.get_by_text("input tokens")).to_be_visible()

    server.stop()
    banner = quiet_page.get_by_text("The server does not answer.")
    expect(banner).to_be_visible()
    expect(context).to_be_disabled()
    expect(
        quiet_page.get_by_role("main").get_by_role("button", name="Ask", exact=True)
    ).to_be_disabled()
    expect(context).to_have_value("Unsent words.")

    with steelyard.embed(home, engine="hashing", port=port):
        expect(banner).to_be_hidden()
        expect(context).to_be_enabled()
        expect(context).to_have_value("Unsent words.")
        quiet_page.get_by_role("main").get_by_role("button", name="Ask", exact=True).click()
        expect(quiet_page.get_by_text("input tokens")).to_be_visible()


@pytest.mark.slow
def test_a_restarted_workbench_offers_to_load_again_with_typed_texts(browser, home):
    from steelyard_workbench.frame.serving import Served

    with steelyard.embed(home, engine="hashing") as server:
        first = Served(server.url)
        page = browser.new_page()
        page.home = first.url
        visit(page, "page=playground")
        page.get_by_label("Text", exact=True).fill("Unsent words.")
        first.stop()
        expect(page.get_by_text("The workbench does not answer.")).to_be_visible()
        second = Served(server.url, port=int(first.url.rsplit(":", 1)[1]))
        expect(page.get_by_text("The workbench is back.")).to_be_visible()
        page.get_by_role("button", name="Reload").click()
        expect(page.get_by_label("Text", exact=True)).to_have_value("Unsent words.")
        page.close()
        second.stop()
