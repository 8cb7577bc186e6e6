"""Families: a gate that fails shows why, a line is rolled back, and moved to another base model."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import expect

from support.browser.browsing import visit
from support.families.failed_gate import server_with_failed_gate
from support.families.grown_family import post
from support.families.learnable_rows import learnable_rows


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose family router has two models, and a fine-tune that its gate did not pass."""
    home = tmp_path_factory.mktemp("home")
    with server_with_failed_gate(home, base_models="double=hashing") as running:
        yield running


@pytest.mark.slow
def test_a_failed_gate_says_why_and_the_line_is_rolled_back(quiet_page):
    page = quiet_page
    visit(page, "page=families")
    page.get_by_role("link", name="router", exact=True).click()
    expect(page.get_by_text("Did not pass the check")).to_be_visible()
    expect(
        page.get_by_text("On the new rows its probabilities are worse than before.")
    ).to_be_visible()
    page.get_by_role("button", name="All rows").click()
    expect(page.get_by_role("heading", name="Rows for the check")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^1 to 10 of \d+$"))).to_be_visible()

    page.get_by_role("button", name=re.compile("^Details")).click()
    page.get_by_role("combobox", name="Look at").click()
    page.get_by_text("router@2, ready", exact=True).last.click()
    expect(page.get_by_text("it is the latest model").first).to_be_visible()
    expect(page.get_by_role("button", name="Roll back to router@2…")).to_be_disabled()

    page.get_by_role("combobox", name="Look at").click()
    page.get_by_text("router@1, ready", exact=True).last.click()
    page.get_by_role("button", name="Roll back to router@1…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("These models are discarded for good: router@2.")).to_be_visible()
    go_back = dialog.get_by_role("button", name="Discard 1 and go back")
    expect(go_back).to_be_disabled()
    dialog.get_by_label("Type router@1 to confirm").fill("router@1")
    go_back.click()
    expect(page.get_by_text("router is back at router@1; router@2 discarded.")).to_be_visible()
    expect(page.get_by_role("cell", name="latest", exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name="discarded").first).to_be_visible()


@pytest.mark.slow
def test_continuing_a_family_moves_it_to_the_base_model_that_is_chosen(quiet_page, server):
    page = quiet_page
    rows = [{**row, "context": f"{row['context']} Again."} for row in learnable_rows(0, 80)]
    with httpx.Client(base_url=server.url, timeout=60) as http:
        dataset_id = http.get("/v1/families/router").json()["dataset_id"]
        body = {"examples": rows, "evaluation_fraction": 0.3}
        post(http, f"/v1/datasets/{dataset_id}/versions", body)

        def plan(base):
            path = "/v1/families/router/continue/estimate"
            n_rows = post(http, path, {"base": base})["rows"]
            # Those of the fine-tune that its gate did not pass are new still.
            assert n_rows["new"] > 56
            earlier = f" and {n_rows['earlier']} earlier" if n_rows["earlier"] else ""
            return f"{n_rows['new']} new or corrected{earlier} to train on"

        visit(page, "page=families&family=router")
        page.get_by_role("button", name=re.compile("^Continue with ")).click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text(plan("hashing"))).to_be_visible()
        expect(dialog.get_by_text("On another base model its next model")).to_be_visible()
        dialog.get_by_role("combobox", name="Base model").click()
        page.get_by_text("double", exact=True).last.click()
        expect(dialog.get_by_text(plan("double"))).to_be_visible()
        dialog.get_by_role("button", name="Continue", exact=True).click()
        expect(page.get_by_text("The next fine-tune of router is queued.")).to_be_visible()
        (job, *_) = http.get("/v1/families/router").json()["jobs"]
        assert http.get(f"/v1/fine-tuning/jobs/{job['id']}").json()["model"] == "double"
