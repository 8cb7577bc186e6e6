"""The theme: the system's until one is chosen, which is kept; and room in a narrow window."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from steelyard_workbench.frame.navigation import ENTRIES, entry_of
from support.browser.browsing import go_to, visit
from support.browser.contrast import faint_texts
from support.browser.cut_off import cut_off_parts

#: A page of fields, and one of charts and a table.
FEW = ("playground", "live")
REST = [entry.slug for entry in ENTRIES if not entry.needs_sign_in and entry.slug not in FEW]
OF_PEOPLE = [entry.slug for entry in ENTRIES if entry.needs_sign_in]


@pytest.fixture(scope="module")
def data(server):
    """Something to show on every page."""
    team = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
    rows = [
        {
            "context": f"ticket {n} about {word}",
            "decisions": [team],
            "targets": {"team": {outcome: 1.0}},
        }
        for n in range(15)
        for word, outcome in (("money", "billing"), ("a parcel", "shipping"))
    ]
    dataset = server.client.datasets.create("tickets", rows)
    for n in range(3):
        server.client.decide(f"ticket {n}", [team], store=True)
    return dataset


def unreadable(page):
    """Return the faint texts of a page in the theme that is on, and in the other."""
    themes = {}
    for theme in ("first", "switched"):
        expect(page.locator(".skeleton:visible")).to_have_count(0)
        themes[theme] = faint_texts(page)
        page.get_by_role("button", name="Toggle theme").click()
    return {theme: texts for theme, texts in themes.items() if texts}


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize("slugs", [FEW, pytest.param(REST, marks=pytest.mark.slow)], ids=len)
def test_every_text_has_contrast_in_the_theme_of_the_system_and_of_the_switch(
    quiet_page, data, system, slugs
):
    look_at(quiet_page, system, slugs)


def look_at(page, system, slugs):
    """Go to pages within one visit, in both themes and on a phone: no text is faint, no part cut off."""
    page.emulate_media(color_scheme=system)
    visit(page, f"page={slugs[0]}")
    expect(page.locator(f".mui-{system}").first).to_be_visible()
    found = {}
    for slug in slugs:
        go_to(page, entry_of(slug))
        found[slug] = unreadable(page)
        page.set_viewport_size({"width": 390, "height": 844})
        if parts := cut_off_parts(page):
            page.wait_for_timeout(700)  # charts are drawn anew
            parts = cut_off_parts(page)
        found[slug] |= {"cut off": parts} if parts else {}
        page.set_viewport_size({"width": 1280, "height": 800})
    assert not any(found.values()), found


@pytest.mark.slow
def test_so_has_every_text_of_the_pages_of_people(quiet_page, signed_in):
    page = quiet_page
    page.home = signed_in["url"]
    visit(page)  # without a session: the sign-in
    assert not unreadable(page)
    page.context.clear_cookies()
    page.context.add_cookies([signed_in])
    look_at(page, "light", OF_PEOPLE)


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


def test_an_address_names_no_dark_theme_once_another_is_chosen(quiet_page):
    """Parts that are drawn meanwhile read it there."""
    held = []

    def pass_on(socket):
        server = socket.connect_to_server()
        socket.on_message(lambda message: held or server.send(message))

    quiet_page.route_web_socket(re.compile(r"/ws"), pass_on)
    visit(quiet_page, "page=settings&theme=dark")
    held.append("what the browser says")
    quiet_page.get_by_role("button", name="Toggle theme").click()
    expect(quiet_page.locator(".mui-light").first).to_be_visible()
    expect(quiet_page).to_have_url(re.compile(r"/\?page=settings$"))


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
