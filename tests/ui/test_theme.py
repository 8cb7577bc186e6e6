"""The theme: the system's until one is chosen, which is kept; and room in a narrow window."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser.browsing import visit


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_system_is_followed_until_a_theme_is_chosen_which_is_kept(quiet_page):
    quiet_page.emulate_media(color_scheme="dark")
    visit(quiet_page, "page=settings")
    expect(quiet_page.locator(".mui-dark").first).to_be_visible()
    expect(quiet_page).not_to_have_url(re.compile(r"theme="))
    quiet_page.get_by_role("button", name="Toggle theme").click()
    expect(quiet_page.locator(".mui-light").first).to_be_visible()
    # The choice is drawn at once, and kept when the server has answered.
    quiet_page.wait_for_function("document.cookie.includes('steelyard-theme=light')")
    visit(quiet_page, "page=settings")
    expect(quiet_page.locator(".mui-light").first).to_be_visible()
    expect(quiet_page.locator(".mui-dark")).to_have_count(0)


@pytest.mark.slow
def test_a_narrow_window_has_no_side_bar_and_every_field(quiet_page):
    quiet_page.set_viewport_size({"width": 800, "height": 700})
    visit(quiet_page, "page=playground")
    expect(quiet_page.locator(".sidebar").first).to_be_hidden()
    right = quiet_page.locator("input, textarea, [role=combobox]").evaluate_all(
        "all => Math.max(0, ...all.map((one) => one.getBoundingClientRect().right))"
    )
    assert right <= 800
