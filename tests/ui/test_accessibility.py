"""axe-core on every page: what it finds may only become less.

What panel-material-ui's frame and Tabulator lack is mended in the browser by ``frame_roles`` and
``table_keys``, so that nothing is listed; a finding that is Panel's own would be, with its count.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from steelyard_workbench.navigation import ENTRIES
from support.browsing import visit

axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

#: Rule to the most elements of a page that may break it, with whose they are.
KNOWN: dict[str, int] = {}


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
SLUGS = [entry.slug for entry in ENTRIES if entry.is_for is None]


def slow_where(is_dark):
    return [
        pytest.param(slug, marks=pytest.mark.slow) if (slug in DARK) is is_dark else slug
        for slug in SLUGS
    ]


def open_page(page, slug, theme=""):
    visit(page, f"page={slug}{theme}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".MuiSkeleton-root")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Pages").first).to_be_attached()


@pytest.mark.parametrize("slug", slow_where(is_dark=True))
def test_nothing_new_is_found(quiet_page, slug):
    open_page(quiet_page, slug)
    assert worse_than_known(quiet_page) == {}


@pytest.mark.parametrize("slug", slow_where(is_dark=False))
def test_nothing_new_is_found_in_the_dark_theme(quiet_page, slug):
    open_page(quiet_page, slug, "&theme=dark")
    expect(quiet_page.locator(".mui-dark").first).to_be_visible()
    assert worse_than_known(quiet_page) == {}


def worse_than_known(page):
    """Return what axe finds beyond ``KNOWN``."""
    found = axe_sync.Axe().run(page).response["violations"]
    return {
        violation["id"]: [
            f"{node['html'][:160]} {node.get('failureSummary', '')[-200:]}"
            for node in violation["nodes"]
        ]
        for violation in found
        if len(violation["nodes"]) > KNOWN.get(violation["id"], 0)
    }
