"""Live: a decision shows up as it is made, and feedback on it changes the figures."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.browser.browsing import visit

REFUND = {"id": "refund", "kind": "binary", "question": "Is money asked back?"}


@pytest.mark.slow
def test_a_decision_shows_up_and_feedback_on_it_counts(server, quiet_page):
    server.client.decide("Where is my parcel?", [REFUND])
    visit(quiet_page, "page=live")
    expect(quiet_page.get_by_text("1 to 1 of 1")).to_be_visible()
    answer = server.client.decide("My card was charged twice.", [REFUND])
    expect(quiet_page.get_by_text("1 to 2 of 2")).to_be_visible()
    quiet_page.keyboard.press("j")
    expect(quiet_page.get_by_text("My card was charged twice.")).to_be_visible()
    quiet_page.get_by_role("combobox", name="Right answer to refund").click()
    quiet_page.get_by_role("menuitem", name=answer.decisions["refund"].top, exact=True).click()
    quiet_page.get_by_role("button", name="Save what was right").click()
    expect(quiet_page.get_by_text("Recorded: refund is")).to_be_visible()
    expect(quiet_page.get_by_text("of 1 known")).to_be_visible()
    quiet_page.get_by_role("button", name="Charts and more figures").click()
    # What is over time is there too, and a line of its table opens the decisions behind it.
    expect(quiet_page.get_by_text("A point for each hour")).to_be_visible()
    quiet_page.get_by_role("button", name="Show the figures over time as a table").click()
    table = quiet_page.get_by_role("table", name="Figures by hour")
    table.get_by_role("button").first.click()
    expect(quiet_page.get_by_text("Only those of")).to_be_visible()
    assert server.client.decision_summary().accuracy.n == 1
    # A phone's first screen has the stream: a text, and under it the answer.
    quiet_page.set_viewport_size({"width": 390, "height": 664})
    visit(quiet_page, "page=live")
    row = quiet_page.locator(".tabulator-row").first
    expect(row.get_by_text("My card was charged twice.")).to_be_in_viewport(ratio=1)
    expect(row.locator(".chip").first).to_be_in_viewport(ratio=1)
    expect(quiet_page.get_by_label("Model", exact=True)).to_be_hidden()
    quiet_page.get_by_role("button", name="Filters").click()
    expect(quiet_page.get_by_label("Model", exact=True)).to_be_visible()
