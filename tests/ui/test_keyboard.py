"""The five journeys by keyboard alone, with a focus that can be seen at every stop."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

import steelyard
from support.browser.browsing import SLOWLY, visit
from support.browser.by_keyboard import Keyboard
from support.datasets.dataset_rows import make_rows
from support.families.failed_gate import server_with_failed_gate

TEAM = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping", "technical"]}


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(
        engine="hashing", base_models="second=hashing", dataset_min_rows=1
    ) as running:
        yield running


@pytest.fixture
def keyboard(quiet_page):
    return Keyboard(quiet_page)


def tickets(count):
    rows = [
        {
            "context": f"Ticket {number}: my card was charged twice.",
            "decisions": [TEAM],
            "targets": {"team": "billing"},
        }
        for number in range(count)
    ]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


@pytest.mark.slow
def test_a_file_is_imported_five_rows_are_reviewed_one_is_undone_and_it_is_sealed(
    quiet_page, server, keyboard
):
    page = quiet_page
    visit(page, "page=datasets")
    chooser = page.locator("input[type=file]")
    keyboard.go_to(chooser)
    chooser.set_input_files(
        {"name": "tickets.jsonl", "mimeType": "application/x-ndjson", "buffer": tickets(8)}
    )
    keyboard.press(page.get_by_role("button", name="Import", exact=True))
    expect(page.get_by_role("heading", name="tickets")).to_be_visible()

    # The table: sorted by a header, and a row opened.
    expect(page.get_by_text("1 to 8 of 8")).to_be_visible()
    rows = page.get_by_role("grid", name="The rows")
    header = rows.get_by_role("columnheader", name="#", exact=True)
    keyboard.press(header)
    keyboard.press(header)
    expect(header).to_have_attribute("aria-sort", "descending")
    keyboard.go_to(rows.get_by_role("row", name="Ticket 7"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Row 6")).to_be_visible()
    expect(rows.get_by_role("row", name="Ticket 6")).to_have_attribute("aria-current", "true")

    keyboard.press(page.get_by_role("button", name="Review it"))
    keyboard.press(page.get_by_role("button", name="Start a review"))
    told = page.get_by_role("status")
    expect(page.get_by_text("Row 1 of 8").first).to_be_visible(timeout=SLOWLY)
    for key in ("2", "a", "x", "3", "x"):
        page.keyboard.press(key)
    expect(told).to_have_text("row 5 of 8, excluded")
    page.keyboard.press("u")
    expect(page.get_by_role("tab", name="Excluded (1)")).to_be_visible()

    keyboard.press(page.get_by_role("button", name="Finish this version…"))
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("rows get another label")).to_be_visible()
    keyboard.press(dialog.get_by_role("button", name="Finish", exact=True))
    expect(page.get_by_text("it became version 2").first).to_be_visible(timeout=SLOWLY)
    [sealed] = server.client.datasets.list().data
    assert (sealed.version, sealed.rows) == (2, 7)


@pytest.mark.slow
def test_a_model_is_evaluated_a_bin_opens_its_rows_and_two_are_compared(
    quiet_page, server, keyboard
):
    page = quiet_page
    dataset = server.client.datasets.create("invoices", evaluation=make_rows(40))
    visit(page, f"page=evaluations&dataset={dataset.id}")
    for model in ("hashing", "second"):
        keyboard.press(page.get_by_role("checkbox", name=model, exact=True), " ")
    keyboard.press(page.get_by_role("button", name="Evaluate", exact=True))
    expect(page.get_by_text("2 started.")).to_be_visible()
    expect(page.get_by_text("80 answers")).to_have_count(2)
    keyboard.press(page.get_by_role("link", name="hashing, version 1"))
    expect(page.get_by_text("All 80 scored decisions.")).to_be_visible()

    second, first = server.client.evaluations.list(dataset.id)
    bins = server.client.evaluations.detail(first.id).reliability
    row = next(one for one in bins if one.n)
    keyboard.press(page.get_by_role("button", name="Show data"))
    name = f"{row.low:.1f} to {row.high:.1f}"
    keyboard.press(page.get_by_role("table", name="Bins").get_by_role("button", name=name))
    expect(page.get_by_text(f"{row.n} of 80 scored decisions: top pro")).to_be_visible()
    rows = page.get_by_role("grid", name="The scored decisions")
    keyboard.go_to(rows.get_by_role("row").nth(1))
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Text of row")).to_contain_text("Invoice")

    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page.get_by_text("80 answers to 40 texts, by both")).to_be_visible()
    flips = server.client.evaluations.compare(first.id, second.id).overall.flips
    keyboard.press(page.get_by_role("button", name=f"fixed ({flips.fixed})"))
    expect(page.get_by_text(f"{flips.fixed} fixed: wrong before")).to_be_visible()


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """The address of a workbench whose family has a failed gate."""
    from steelyard_workbench.frame.serving import Served

    with server_with_failed_gate(tmp_path_factory.mktemp("home")) as running:
        served = Served(running.url)
        yield served.url
        served.stop()


@pytest.mark.slow
def test_a_failed_gate_says_why_no_model_came_of_it_and_the_line_is_rolled_back(
    quiet_page, line, keyboard
):
    page = quiet_page
    page.home = line
    visit(page, "page=families")
    keyboard.press(page.get_by_role("link", name="router", exact=True))
    expect(page.get_by_text("Did not pass the check")).to_be_visible()
    expect(
        page.get_by_text("On the new rows its probabilities are worse than before.")
    ).to_be_visible()
    keyboard.press(page.get_by_role("button", name="All rows"))
    expect(page.get_by_text(re.compile(r"^1 to 10 of \d+$"))).to_be_visible()
    page.keyboard.press("j")
    rows = page.get_by_role("grid", name="The rows for the check")
    expect(rows.get_by_role("row").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Change of loss", exact=True)).to_be_visible()

    keyboard.press(page.get_by_role("button", name=re.compile("^Details")))
    look_at = page.get_by_role("combobox", name="Look at")
    keyboard.choose(look_at, page.get_by_role("menuitem", name="router@2, ready"))
    expect(page.get_by_text("it is the latest model").first).to_be_visible()
    expect(page.get_by_role("button", name="Roll back to router@2…")).to_be_disabled()

    keyboard.choose(look_at, page.get_by_role("menuitem", name="router@1, ready"))
    keyboard.press(page.get_by_role("button", name="Roll back to router@1…"))
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("These models are discarded for good: router@2.")).to_be_visible()
    keyboard.type(dialog.get_by_label("Type router@1 to confirm"), "router@1")
    go_back = dialog.get_by_role("button", name="Discard 1 and go back")
    expect(go_back).to_be_enabled()
    keyboard.press(go_back)
    expect(page.get_by_text("router is back at router@1; router@2 discarded.")).to_be_visible()
