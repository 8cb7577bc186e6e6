"""Playground: ask, be warned, and copy what was asked as a command that works."""

from __future__ import annotations

import json
import subprocess

from playwright.sync_api import expect

from support.browsing import visit

#: More than a field of panel-material-ui takes by itself.
LONG = "My card was charged twice. " * 300


def test_what_was_asked_is_answered_and_its_curl_command_works(quiet_page):
    visit(quiet_page, "page=playground")
    expect(quiet_page.get_by_role("heading", name="Playground")).to_be_visible()
    quiet_page.get_by_label("Context").fill(LONG)
    quiet_page.get_by_label("Question").fill("Who should look at it?")
    quiet_page.get_by_role("button", name="Ask", exact=True).click()
    expect(quiet_page.get_by_text("input tokens")).to_be_visible()
    command = quiet_page.get_by_label("curl", exact=True).last.inner_text()
    assert "Who should look at it?" in command
    assert LONG in command
    answered = subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True)
    [result] = json.loads(answered.stdout)["decisions"].values()
    assert set(result["probabilities"]) == {"billing", "shipping", "technical"}


def test_a_request_that_cannot_be_sent_says_what_is_wrong_as_it_is_written(quiet_page):
    visit(quiet_page, "page=playground")
    outcomes = quiet_page.get_by_label("Outcomes, one a line")
    outcomes.fill("only one")
    quiet_page.get_by_label("Question").click()
    expect(quiet_page.get_by_text("invalid_request")).to_be_visible()
