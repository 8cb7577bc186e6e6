"""Playground: ask, see warnings, and copy the request as a command that works."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from playwright.sync_api import expect

import steelyard
from support.browser.browsing import visit

axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

#: More than a field of panel-material-ui takes by itself.
LONG = "My card was charged twice. " * 300


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing", base_models="second=hashing") as running:
        yield running


def test_a_request_is_answered_and_its_curl_command_works(quiet_page):
    visit(quiet_page, "page=playground")
    expect(quiet_page.get_by_role("heading", name="Playground")).to_be_visible()
    quiet_page.get_by_label("Text", exact=True).fill(LONG)
    quiet_page.get_by_label("Question").fill("Who should look at it?")
    quiet_page.get_by_role("main").get_by_role("button", name="Ask", exact=True).click()
    expect(quiet_page.get_by_text("input tokens")).to_be_visible()
    expect(quiet_page.get_by_text("Acts on every answer")).to_be_visible()
    quiet_page.get_by_role("button", name="Use it in your program").click()
    command = quiet_page.get_by_label("curl", exact=True).last.inner_text()
    assert "Who should look at it?" in command
    assert LONG in command
    answered = subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True)
    [result] = json.loads(answered.stdout)["decisions"].values()
    assert set(result["probabilities"]) == {"billing", "shipping", "technical", "other"}
    # What was typed is there after a reload, and after another page.
    quiet_page.reload()
    expect(quiet_page.get_by_label("Question")).to_have_value("Who should look at it?")
    expect(quiet_page.get_by_label("Text", exact=True)).to_have_value(LONG)
    quiet_page.get_by_role("tab", name="Decisions", exact=True).click()
    expect(quiet_page).to_have_url(re.compile("page=decisions"))
    quiet_page.go_back()
    expect(quiet_page.get_by_label("Question")).to_have_value("Who should look at it?")


@pytest.mark.slow
def test_an_incomplete_request_says_its_next_step_while_typing(quiet_page):
    visit(quiet_page, "page=playground")
    outcomes = quiet_page.get_by_label("Answers, one a line")
    outcomes.fill("only one")
    quiet_page.get_by_label("Question").click()
    expect(quiet_page.get_by_text("Write two answers at least, one a line.")).to_be_visible()


@pytest.mark.slow
def test_a_row_is_answered_by_two_models_beside_each_other_and_saved(quiet_page, server):
    asked = {"id": "team", "kind": "single", "question": "Who?", "outcomes": ["billing", "parcels"]}
    rows = [
        {"context": f"Ticket {n}", "decisions": [asked], "targets": {"team": {"billing": 1.0}}}
        for n in range(3)
    ]
    made = server.client.datasets.create("asked", training=rows)
    page = quiet_page
    visit(page, f"page=datasets&dataset={made.id}")
    page.get_by_text("Ticket 1").first.click()
    page.get_by_role("button", name="Ask several models").click()
    expect(page.get_by_text("Row 1, labelled team: billing")).to_be_visible()
    expect(page.get_by_label("Text", exact=True)).to_have_value("Ticket 1")
    page.get_by_label("Text", exact=True).fill("A text that was pasted")
    page.get_by_role("button", name="Which model answers").click()
    page.get_by_role("checkbox", name="second").check()
    page.get_by_role("main").get_by_role("button", name="Ask", exact=True).click()
    answers = page.get_by_role("table", name="Answers by model")
    expect(answers.get_by_role("row")).to_have_count(3)
    expect(page.get_by_role("heading", name="second", exact=True)).to_be_visible()
    expect(page.get_by_label("Right for team")).to_be_visible()
    assert axe_sync.Axe().run(page).response["violations"] == []
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_text("Say which answer is right")).to_be_visible()  # no model said it
    page.get_by_role("combobox", name="Right for team").click()
    page.get_by_role("menuitem", name="billing", exact=True).click()
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_text("Kept: version 2 of asked has it.")).to_be_visible()
    assert server.client.datasets.get(made.id).rows == 4
