"""Datasets: a file with mistakes is refused whole, a good one becomes rows and a version."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from steelyard.client.tables import read_table
from support.browser.browsing import visit


def lines(outcomes):
    rows = [
        {
            "context": f"Ticket {number} of the import",
            "decisions": [{"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}],
            "targets": {"team": outcome},
        }
        for number, outcome in enumerate(outcomes)
    ]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def choose(page, name, data):
    page.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/x-ndjson", "buffer": data}
    )


@pytest.mark.slow
def test_a_file_is_refused_with_every_mistake_then_imported_and_its_version_opened(
    quiet_page, server
):
    visit(quiet_page, "page=datasets")
    expect(quiet_page.get_by_text("No datasets yet.")).to_be_visible()

    choose(quiet_page, "none.jsonl", b"")
    expect(quiet_page.get_by_text("The file is empty.")).to_be_visible()
    choose(quiet_page, "tickets.jsonl", lines(["billing", "nobody", "billing", "no one"]))
    expect(quiet_page.get_by_text("2 left out:")).to_be_visible()
    expect(quiet_page.get_by_text("line 2:")).to_be_visible()
    expect(quiet_page.get_by_text("line 4:")).to_be_visible()
    assert server.client.datasets.list().data == []

    choose(quiet_page, "tickets.jsonl", lines(["billing", "shipping"] * 8))
    expect(quiet_page.get_by_text("16 rows")).to_be_visible()
    expect(quiet_page.get_by_label("Name of the dataset")).to_have_value("tickets")
    quiet_page.get_by_role("button", name="Import", exact=True).click()
    expect(quiet_page.get_by_role("heading", name="tickets")).to_be_visible()
    expect(quiet_page.get_by_text("Ticket 3 of the import")).to_be_visible()
    quiet_page.keyboard.press("j")
    expect(quiet_page.get_by_role("heading", name="Row 0")).to_be_visible()

    quiet_page.get_by_role("button", name=re.compile("^Details")).click()
    quiet_page.get_by_role("button", name="Show its versions").click()
    expect(quiet_page.get_by_text("Version 1 is the first")).to_be_visible()
    quiet_page.get_by_role("button", name="Export…").click()
    with quiet_page.expect_download() as download:
        quiet_page.get_by_role("button", name="Download JSON Lines").click()
    assert download.value.suggested_filename == "tickets-v1.jsonl"
    assert len(download.value.path().read_text().splitlines()) == 16
    with quiet_page.expect_download() as download:
        quiet_page.get_by_role("button", name="Download for Hugging Face").click()
    assert download.value.suggested_filename == "tickets-v1.zip"
    assert len(read_table(download.value.path()).rows) == 16


@pytest.mark.slow
def test_contents_of_rows_are_shown_and_not_run(quiet_page, server):
    image = "<img src=x onerror=\"document.title='hit'\">"
    rows = [json.loads(line) for line in lines(["billing", "shipping"] * 4).splitlines()]
    rows[0]["context"] = image
    rows[0]["decisions"][0]["question"] = f"Who? {image}"
    dataset = server.client.datasets.create(f"tickets {image}", rows)
    visit(quiet_page, "page=datasets")
    link = quiet_page.get_by_role("link", name=dataset.name)
    with quiet_page.context.expect_page() as tab:
        link.click(modifiers=["Control"])
    expect(tab.value.get_by_role("heading", name=dataset.name)).to_be_visible()
    tab.value.close()
    link.click()
    expect(quiet_page.get_by_role("heading", name=dataset.name)).to_be_visible()
    cell = quiet_page.locator(".tabulator-cell", has_text=image)
    cell.hover()
    expect(cell).to_have_attribute("title", image)
    cell.click()
    expect(quiet_page.get_by_text(f"Who? {image}")).to_be_visible()
    expect(quiet_page.locator("img[src=x]")).to_have_count(0)
    assert quiet_page.title() != "hit"


@pytest.mark.slow
def test_a_dataset_that_is_opened_first_gets_its_charts_and_forms_too(quiet_page, server):
    rows = [json.loads(line) for line in lines(["billing", "shipping"] * 4).splitlines()]
    dataset = server.client.datasets.create("opened first", rows)
    visit(quiet_page, f"page=datasets&dataset={dataset.id}")
    expect(quiet_page.get_by_text("Ticket 3 of the import")).to_be_visible()
    quiet_page.get_by_role("button", name=re.compile("^Details")).click()
    expect(quiet_page.get_by_role("heading", name="What prompt tuning can tune")).to_be_visible()
    expect(quiet_page.get_by_role("button", name="Export…")).to_be_visible()
    quiet_page.get_by_role("button", name="billing 4").click()
    expect(quiet_page.get_by_role("button", name="team is billing")).to_be_visible()
