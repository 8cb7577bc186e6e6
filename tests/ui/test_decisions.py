"""A named decision by mouse: edited, tried, compared, moved to production, and rolled back."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import steelyard
from support.browser.accessibility import stays_worse
from support.browser.browsing import visit
from support.families.learnable_rows import DECISION, learnable_rows

#: Half a minute alone; its parts are tested in tests/workbench/test_decisions_page.py.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing") as running:
        dataset = running.client.datasets.create("desk rows", examples=learnable_rows(n_rows=240))
        named = running.client.named_decisions
        named.create("desk", [{**DECISION, "abstain": {"min_probability": 0.501}}])
        named.change("desk", dataset_id=dataset.id)
        yield running


def test_a_version_is_edited_compared_moved_and_rolled_back_by_mouse(quiet_page, server):
    page, named = quiet_page, server.client.named_decisions
    main = page.get_by_role("main")

    def press(name, within=main):
        within.get_by_role("button", name=name, exact=True).click()

    visit(page, "page=decisions&named=desk")
    press("Edit")
    main.get_by_label("Sure enough to act from, 0 to 1; empty: always").fill("0.502")
    main.get_by_label("What changes, for your colleagues").fill("a bit more sure")
    expect(main.get_by_text("It is free here, for a short text")).to_be_visible()
    press("Fields and rules")
    rules = main.get_by_label("Rules, one a line")
    main.get_by_label("Fields, one a line").fill("amount: decimal, optional")
    rules.fill("refund if amount <")
    expect(main.get_by_text("when of rule 1 cannot be read at column 9").first).to_be_visible()
    assert not stays_worse(page)
    rules.fill("refund if amount < 50\nelse person")
    expect(main.get_by_text("refund where amount below 50")).to_be_visible()
    press("Try it on rows")
    press("Ask both")
    expect(main.get_by_text("of 20 answers differ.")).to_be_visible()
    expect(main.get_by_text("Rules of the new version")).to_be_visible()
    press("Save as a new version")
    expect(main.get_by_text("Version 2 is saved.")).to_be_visible()
    staging = main.get_by_role("region", name="Staging")
    expect(staging.locator("ins").first).to_have_text("502")
    expect(main.get_by_role("region", name="Production").locator("del")).to_have_text("501")

    assert not stays_worse(page)

    press("Compare with production")
    move = main.get_by_role("button", name="Move 2 to production")
    expect(move).to_be_visible()
    expect(main.get_by_text("Version 2 is as good as production")).to_be_visible()
    move.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Why, for the history (may be empty)")).to_be_focused()
    dialog.get_by_label("Why, for the history (may be empty)").fill("it passed")
    press("Move production", dialog)
    expect(
        main.get_by_text("production moved from 1 to 2, which passed: it passed")
    ).to_be_visible()
    assert named.version("desk").version == 2

    press("Roll back to 1")
    dialog.get_by_label("Why, for the history (may be empty)").fill("too many to a person")
    press("Roll back", dialog)
    expect(main.get_by_text("production moved from 2 to 1: too many to a person")).to_be_visible()
    assert named.version("desk").version == 1

    main.get_by_role("slider", name="Percent of the requests for production").press("End")
    press("Send it 90 %")
    expect(main.get_by_text("90 % of production to staging")).to_be_visible()
    assert named.get("desk").shares[0].share == 0.9
