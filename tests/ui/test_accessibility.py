"""axe-core on every page, in the light and in the dark; and no page ends at a command line."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from steelyard_workbench.frame.navigation import ENTRIES
from support.browser.accessibility import commands_on, stays_worse
from support.browser.browsing import go_to, visit

pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")


@pytest.fixture(scope="module", autouse=True)
def data(server):
    """Something to show on every page."""
    asked = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
    rows = [
        {
            "context": f"ticket {n} about {'money' if n % 2 else 'a parcel'}",
            "decisions": [asked],
            "targets": {"team": {"billing" if n % 2 else "shipping": 1.0}},
        }
        for n in range(30)
    ]
    server.client.datasets.create("tickets", rows)
    server.client.decide("a ticket", [asked], store=True)


#: Pages that every run looks at in the dark, and at the others in the light: forms, tables, and
#: figures with words.
DARK = ("datasets", "playground", "live")
#: Those of people are looked at in ``test_sign_in``, with somebody signed in.
PAGES = [entry for entry in ENTRIES if not entry.needs_sign_in]


@pytest.mark.slow
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    "is_split", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["split", "all"]
)
def test_nothing_new_is_found(quiet_page, is_dark, is_split):
    pages = [one for one in PAGES if not is_split or (one.slug in DARK) is is_dark]
    visit(quiet_page, f"page={pages[-1].slug}{'&theme=dark' if is_dark else ''}")
    expect(quiet_page.locator(".mui-dark" if is_dark else ".mui-light").first).to_be_visible()
    found = {}
    for entry in pages:
        go_to(quiet_page, entry)
        found[entry.slug] = list(stays_worse(quiet_page).items())
        found[entry.slug] += commands_on(quiet_page)
    assert not any(found.values()), found
