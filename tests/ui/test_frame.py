"""The frame around the pages: going about, keys, the address, and a server that goes away."""

from __future__ import annotations

from playwright.sync_api import expect

from browsing import visit


def test_it_opens_at_home_and_a_key_shows_the_keys(quiet_page):
    visit(quiet_page)
    expect(quiet_page.get_by_role("heading", name="Home")).to_be_visible()
    quiet_page.keyboard.press("?")
    expect(quiet_page.get_by_text("Choose the outcome of that number")).to_be_visible()
    quiet_page.keyboard.press("Escape")
    expect(quiet_page.get_by_text("Choose the outcome of that number")).to_be_hidden()


def test_the_first_stop_of_tab_leads_past_the_menu(quiet_page):
    visit(quiet_page, "page=settings")
    heading = quiet_page.get_by_role("heading", level=1)
    expect(heading).to_be_visible()
    link = quiet_page.get_by_role("button", name="Skip to content")
    expect(link).to_be_attached()
    quiet_page.keyboard.press("Tab")
    expect(link).to_be_focused()
    quiet_page.keyboard.press("Enter")
    expect(heading).to_be_focused()


def test_a_page_that_is_not_there_shows_the_way_home(quiet_page):
    visit(quiet_page, "page=%22nowhere%22")
    quiet_page.get_by_role("button", name="Go to Home").click()
    expect(quiet_page.get_by_role("heading", name="Home")).to_be_visible()
