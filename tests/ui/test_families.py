"""Families: a gate that fails shows why, and the line is rolled back with its list confirmed."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from playwright.sync_api import expect

from browsing import visit
from client.family_data import gate, group
from fine_tuned import ask_stand_in, stand_in
from grown_family import ended, post
from learnable_rows import learnable_rows
from live_server import live_server
from steelyard.bootstrap import open_worker

WORSE = gate(
    passed=False,
    reasons=["new_rows_worse"],
    groups={"new": group(before=0.4, after=0.9), "earlier": group(after=0.91)},
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose family router has two models, and a fine-tune that its gate did not pass."""
    home = tmp_path_factory.mktemp("home")
    with live_server(home=home, jobs="off") as running, ThreadPoolExecutor(1) as thread:
        # In a thread of its own: the browser's has a loop, beside which no worker is opened.
        assert thread.submit(grow_router, running, home).result() == "gate_failed"
        yield running


def grow_router(server, home):
    """Grow the family; gives how its last fine-tune ended."""
    with (
        pytest.MonkeyPatch.context() as patch,
        open_worker(server.services.settings),
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        stand_in(patch, home)
        body = {"name": "tickets", "examples": learnable_rows(0), "evaluation_fraction": 0.3}
        dataset_id = post(http, "/v1/datasets", body)["id"]
        job = post(http, "/v1/families", {"family": "router", "dataset_id": dataset_id})
        # Stand-ins cannot be loaded: a family that is off serves nobody.
        post(http, "/v1/families/router/switch", {"on": False})
        for batch, told in ((1, {}), (2, {"passed": False, "gate": WORSE})):
            ended(http, job["id"])
            ask_stand_in(home, **told)
            rows = {"examples": learnable_rows(batch), "evaluation_fraction": 0.3}
            post(http, f"/v1/datasets/{dataset_id}/versions", rows)
            job = post(http, "/v1/families/router/continue", {})
        return ended(http, job["id"])["outcome"]


def test_a_failed_gate_says_why_and_the_line_is_rolled_back(quiet_page):
    page = quiet_page
    visit(page, "page=families")
    page.get_by_role("button", name="router", exact=True).click()
    expect(page.get_by_text("Failed against the model it was trained from.")).to_be_visible()
    expect(page.get_by_text("It is worse on new rows")).to_be_visible()
    page.get_by_role("button", name="All new rows").click()
    expect(page.get_by_role("heading", name="Held-out rows")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^1 to 10 of \d+$"))).to_be_visible()

    page.get_by_role("combobox", name="Look at").click()
    page.get_by_text("router@2, ready", exact=True).last.click()
    expect(page.get_by_text("it is the latest model already")).to_be_visible()
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
