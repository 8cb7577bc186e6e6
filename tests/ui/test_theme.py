"""The theme: turned in the bar at the top, kept in the address, and there again after a reload."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from support.browsing import visit


def test_the_theme_is_kept_over_a_reload_and_in_an_address(quiet_page):
    visit(quiet_page, "page=settings")
    quiet_page.get_by_role("button", name="Toggle theme").click()
    expect(quiet_page).to_have_url(re.compile(r"[?&]theme=dark"))
    visit(quiet_page, "page=settings&theme=dark")
    expect(quiet_page.locator(".mui-dark").first).to_be_visible()
    expect(quiet_page.locator(".mui-light")).to_have_count(0)
    quiet_page.get_by_role("button", name="Toggle theme").click()
    expect(quiet_page.locator(".mui-light").first).to_be_visible()
    expect(quiet_page).not_to_have_url(re.compile(r"theme=dark"))
