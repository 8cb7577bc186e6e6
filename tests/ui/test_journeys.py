"""A newcomer, a reviewer and an analyst get where they want, in few clicks, on pages that axe accepts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import steelyard
from steelyard.cli.samples import sample_file
from support.browser.browsing import SLOWLY, visit

#: Most of a minute each; what they pass is looked at by itself in the files beside this one.
pytestmark = pytest.mark.slow
axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")


@pytest.fixture
def server():
    """A server as a newcomer finds it, with the sample loaded."""
    with steelyard.embed(engine="hashing") as running:
        running.client.datasets.create("support_triage", sample_file("support_triage"))
        yield running


@pytest.fixture
def workbench(server):
    """A workbench of that server."""
    from steelyard_workbench.frame.serving import Served

    served = Served(server.url)
    yield served
    served.stop()


class Clicking:
    """Clicks, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, shown) -> None:
        shown.click()
        self.count += 1

    def counted(self) -> int:
        """Return how many there were since the last count."""
        counted, self.count = self.count, 0
        return counted


def check(page):
    """Fail on whatever axe finds, once the page has its data."""
    expect(page.locator(".skeleton:visible")).to_have_count(0)
    found = axe_sync.Axe().run(page).response["violations"]
    told = {
        one["id"]: [node["html"][:160] + node["failureSummary"] for node in one["nodes"]]
        for one in found
    }
    assert told == {}, page.url


@pytest.mark.parametrize("width", [1440, 800])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_gets_there(quiet_page, server, theme, width):
    page, click = quiet_page, Clicking()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)

    def button(name):
        return page.get_by_role("button", name=name, exact=True)

    # A newcomer has a first answer in two clicks.
    visit(page)
    expect(page.locator(f".mui-{theme}").first).to_be_visible()
    visit(page)  # the server knows the system's theme from the first visit on
    check(page)
    click(button("Ask a question"))
    # The menu has one of this name too.
    click(page.get_by_role("main").get_by_role("button", name="Ask", exact=True))
    expect(page.get_by_text("input tokens")).to_be_visible()
    assert click.counted() == 2
    check(page)

    # A reviewer goes through rows by keys, takes one back, and seals.
    visit(page)
    click(button("Review the sample"))
    expect(page.get_by_text("Row 1 of 716").first).to_be_visible(timeout=SLOWLY)
    for key in ("2", "x", "u", "a"):
        page.keyboard.press(key)
    expect(page.get_by_role("tab", name="To review (714)")).to_be_visible()
    check(page)
    button("Finish this version…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Finish", exact=True).click()
    expect(page.get_by_text("it became version 2").first).to_be_visible(timeout=SLOWLY)
    check(page)

    # An analyst evaluates what was sealed, and sends a wrong record to its review row in one click.
    button("Evaluate it").click()
    page.get_by_role("checkbox", name="hashing", exact=True).check()
    button("Evaluate").click()
    expect(page.get_by_text("answers · ")).to_be_visible()
    page.get_by_role("link", name="hashing, version 2").click()
    expect(page.get_by_text("scored decisions.")).to_be_visible()
    page.keyboard.press("j")
    read = page.get_by_role("region", name="Text of row").inner_text()
    check(page)
    click.counted()
    click(button("Send to review"))
    expect(page.get_by_role("tab", name="To review")).to_be_visible()
    expect(page.get_by_text(read[:60]).first).to_be_visible(timeout=SLOWLY)
    assert click.counted() == 1

    # And starts a family on it in four.
    [dataset] = server.client.datasets.list().data
    visit(page, f"page=datasets&dataset={dataset.id}")
    click(button("Train on it"))
    name = page.get_by_label("Name (a to z, 0 to 9, hyphens)")
    click(name)
    name.fill("triage")
    click(button("Show the plan"))
    click(button("Start"))
    expect(page.get_by_role("heading", name="triage")).to_be_visible()
    assert click.counted() == 4
    check(page)
