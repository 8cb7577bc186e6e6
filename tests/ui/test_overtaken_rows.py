"""A row that is clicked or selected while the server has others for its place already is that row."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser.browsing import SLOWLY, visit

TEAM = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}


class SlowLine:
    """The socket of a page, on which the server's messages can be held."""

    def __init__(self, page):
        self._waiting = None
        page.route_web_socket("**/ws**", self._connect)

    def _connect(self, browser):
        server = browser.connect_to_server()

        def pass_on(message):
            if self._waiting is None:
                browser.send(message)
            else:
                self._waiting.append(lambda: browser.send(message))
                self._held.append(message)

        server.on_message(pass_on)

    def hold(self):
        self._waiting, self._held = [], []

    def has(self, *texts):
        """Whether something is held that has some texts in their order."""
        wanted = re.compile(".*".join(texts))
        return any(wanted.search(str(message)) for message in self._held)

    def release(self):
        waiting, self._waiting = self._waiting, None
        for send in waiting:
            send()


def wait_for(page, condition):
    for _ in range(SLOWLY // 50):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("It did not come to pass")


@pytest.fixture
def dataset(server):
    """A dataset of eight tickets."""
    rows = [
        {
            "context": f"Ticket {number}: my card was charged twice.",
            "decisions": [TEAM],
            "targets": {"team": "billing"},
        }
        for number in range(8)
    ]
    return server.client.datasets.create("tickets", rows)


def sort_unseen(page, line):
    """Sort the rows downwards in the server, and hold its messages to the browser back."""
    rows = page.get_by_role("grid", name="The rows")
    header = rows.get_by_role("columnheader", name=re.compile("^(row|#)$", re.I))
    header.click()
    expect(header).to_have_attribute("aria-sort", "ascending")
    line.hold()
    header.click()
    wait_for(page, lambda: line.has("Ticket 7", "Ticket 0"))
    return rows


@pytest.mark.slow
def test_the_row_that_is_clicked_is_opened(quiet_page, dataset):
    page = quiet_page
    line = SlowLine(page)
    visit(page, f"page=datasets&dataset={dataset.id}")
    expect(page.get_by_text("1 to 8 of 8")).to_be_visible()
    rows = sort_unseen(page, line)
    rows.get_by_text("Ticket 6").click()
    line.release()
    expect(page.get_by_role("heading", name="Row 6")).to_be_visible()
    expect(rows.get_by_role("row", name="Ticket 6")).to_have_attribute("aria-current", "true")


@pytest.mark.slow
def test_the_row_that_is_selected_is_changed(quiet_page, dataset, server):
    page = quiet_page
    line = SlowLine(page)
    draft = server.client.drafts.create(dataset.id)
    visit(page, f"page=review&draft={draft.id}&view=bulk")
    expect(page.get_by_text("Ticket 3: my card")).to_be_visible(timeout=SLOWLY)
    rows = sort_unseen(page, line)
    rows.get_by_role("row", name="Ticket 6").get_by_role("checkbox").check()
    line.release()
    page.get_by_role("button", name="Accept 1 row (selected)").click()
    expect(page.get_by_role("tab", name="To review (7)")).to_be_visible(timeout=SLOWLY)
    accepted = [
        row.row for row in server.client.drafts.rows(draft.id).data if row.now.state == "accepted"
    ]
    assert accepted == [6]
