"""The frame around the pages: going about, keys, the address, and a server that goes away."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser.browsing import visit

axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")


def test_it_opens_at_home_and_a_key_shows_the_keys(quiet_page):
    visit(quiet_page)
    expect(quiet_page.get_by_role("heading", name="Home")).to_be_visible()
    expect(quiet_page.locator("html")).to_have_css("font-size", "14px")
    quiet_page.keyboard.press("?")
    expect(quiet_page.get_by_text("Choose the answer of that number")).to_be_visible()
    quiet_page.keyboard.press("Escape")
    expect(quiet_page.get_by_text("Choose the answer of that number")).to_be_hidden()


@pytest.mark.slow
def test_a_page_and_a_row_are_found_by_keys_alone(quiet_page, server):
    asked = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
    rows = [
        {"context": f"crate {n}", "decisions": [asked], "targets": {"team": {"billing": 1.0}}}
        for n in range(12)
    ]
    made = server.client.datasets.create("crates", rows)
    visit(quiet_page)
    quiet_page.keyboard.press("Control+k")
    field = quiet_page.get_by_role("combobox", name="Find a page, dataset, model or row")
    expect(field).to_be_focused()
    quiet_page.keyboard.type("crate 7")
    expect(quiet_page.get_by_role("option")).to_have_count(1)
    expect(quiet_page.get_by_role("option", name="row crate 7 crates")).to_be_visible()
    quiet_page.keyboard.press("Enter")
    expect(field).to_be_hidden()
    expect(quiet_page).to_have_url(re.compile(f"dataset={made.id}"))
    expect(quiet_page.get_by_text("1 to 1 of 1")).to_be_visible()
    expect(quiet_page.get_by_role("button", name="All datasets")).to_be_visible()
    quiet_page.keyboard.press("Control+k")
    quiet_page.keyboard.type("liv")
    # Before anything is typed all pages are listed, and Enter takes the first.
    expect(quiet_page.get_by_role("option")).to_have_count(1)
    expect(quiet_page.get_by_role("option", name="page Live")).to_be_visible()
    quiet_page.keyboard.press("Enter")
    expect(quiet_page.get_by_role("heading", level=1)).to_have_text("Live")


@pytest.mark.slow
def test_the_browser_gets_the_policy_of_the_page(quiet_page):
    answers = []

    def note(answer):
        if answer.url.startswith("http"):  # and not made in the browser
            answers.append(answer)

    quiet_page.on("response", note)
    visit(quiet_page, "page=datasets")
    assert {"document", "script"} <= {answer.request.resource_type for answer in answers}
    for answer in answers:
        told = answer.headers
        assert told["x-content-type-options"] == "nosniff", answer.url
        assert told["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'self'" in told["content-security-policy"]


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_way_back_shows_the_page_before(quiet_page):
    heading = quiet_page.get_by_role("heading", level=1)
    visit(quiet_page)
    expect(heading).to_have_text("Home")
    for keys, title in (("gd", "Datasets"), ("gj", "Jobs")):
        for key in keys:
            quiet_page.keyboard.press(key)
        expect(heading).to_have_text(title)
        expect(quiet_page).to_have_title(f"{title} - Steelyard")
        expect(quiet_page).to_have_url(re.compile(f"page={title.lower()}"))
    quiet_page.evaluate("() => { history.back(); }")
    expect(heading).to_have_text("Datasets")
    expect(quiet_page).to_have_url(re.compile("page=datasets"))
    expect(quiet_page.locator("[data-keys=ready]")).to_be_attached()
    quiet_page.evaluate("() => { history.forward(); }")
    expect(heading).to_have_text("Jobs")


@pytest.mark.slow
def test_a_choice_on_a_page_is_no_entry_of_the_history(quiet_page):
    visit(quiet_page, "page=settings")
    before = quiet_page.evaluate("history.length")
    quiet_page.get_by_role("button", name="Toggle theme").click()
    expect(quiet_page).to_have_url(re.compile("theme=dark"))
    assert quiet_page.evaluate("history.length") == before


@pytest.mark.slow
def test_a_page_that_is_not_there_shows_the_way_home(quiet_page):
    visit(quiet_page, "page=%22nowhere%22")
    quiet_page.get_by_role("button", name="Go to Home").click()
    expect(quiet_page.get_by_role("heading", name="Home")).to_be_visible()


@pytest.mark.slow
def test_a_part_that_listens_late_gets_earlier_changes(quiet_page):
    visit(quiet_page)
    told = quiet_page.evaluate(
        """() => {
          const name = "panel.models.esm.ReactComponent";
          const models = [...Bokeh.documents[0]._all_models.values()];
          const text = models.find((one) => one.type === name && "object" in one.data.attributes);
          const drawn = [text.data.object];
          text.data.object = `${drawn[0]} and more`;
          text.watch(null, "object", () => drawn.push(text.data.object), true);
          return drawn;
        }"""
    )
    assert told[1] == f"{told[0]} and more"
