"""Going to a page of the workbench, as a person does who waits until it is there."""

from __future__ import annotations

import shutil

#: Milliseconds; a shared machine draws a page in seconds, and stands still for more of them.
SLOWLY = 60_000


def find_chromium(*before: str) -> str | None:
    """Return the path of a Chromium, one of the names given before the others; ``None`` without one."""
    names = (*before, "chromium", "chromium-browser", "chromium-headless-shell")
    return next((found for name in names if (found := shutil.which(name))), None)


def visit(page, query=""):
    """Open a page of the workbench and wait until it takes keys and shows changes.

    Parameters
    ----------
    page : playwright.sync_api.Page
        Of the fixture ``quiet_page``.
    query : str, default ""
        The part behind ``?`` in the address.
    """
    from playwright.sync_api import expect

    page.goto(f"{page.home}/?{query}" if query else page.home)
    expect(page.locator("[data-keys=ready]")).to_be_attached(timeout=SLOWLY)


def go_to(page, entry):
    """Go to a page of the workbench by its menu and its tabs, within one visit.

    Parameters
    ----------
    entry : steelyard_workbench.frame.navigation.PageEntry
    """
    from playwright.sync_api import expect

    from steelyard_workbench.frame.navigation import SECTIONS

    [title] = [section.title for section in SECTIONS if section.name == entry.section]
    menu = page.get_by_role("navigation", name="Pages").first
    menu.get_by_role("button", name=title, exact=True).click()
    tab = page.get_by_role("tab", name=entry.title, exact=True)
    first = page.get_by_role("heading", level=1, name=entry.title, exact=True)
    expect(tab.or_(first).first).to_be_visible()
    if tab.count():
        tab.click()
    expect(page.get_by_role("heading", level=1, name=entry.title, exact=True)).to_be_visible()
    expect(page.locator(".skeleton:visible")).to_have_count(0)
