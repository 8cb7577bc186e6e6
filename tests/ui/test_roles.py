"""Every page that a role has, with nothing, two rows, a sample and 100,000 rows: axe finds nothing.

Nor does any of them end at a command line.
"""

from __future__ import annotations

import re
import time
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

import steelyard
from steelyard.cli.samples import SAMPLES, sample_file
from steelyard.client import Client, ClientOptions
from steelyard.people.roles import ROLES
from steelyard.storage import open_state
from steelyard_workbench.frame.navigation import DATASETS, entries_for, sections_for, tabs_for
from support.accounts.console import account_with_rows, begin_session
from support.browser.accessibility import commands_on, stays_worse
from support.browser.browsing import visit

#: Twenty pages each.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

SAM, OPERATOR = "sam@example.org", "operator"
SAMPLE, MANY = -1, 100_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with steelyard.embed(home, engine="hashing", accounts="on", operators=SAM) as running:
        yield running


@pytest.fixture(scope="module")
def state(server):
    opened = open_state(f"sqlite:///{server.home / 'state.sqlite'}")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def account_with_many_rows(server, state):
    """The account of all tests with so many rows."""
    return account_with_rows(server.url, state, MANY)


def account_of(server, state, n_rows):
    """Make an account; return its id and that of its dataset."""
    if n_rows != SAMPLE:
        return account_with_rows(server.url, state, n_rows)
    account, _ = account_with_rows(server.url, state, 0)
    token = begin_session(state, "first@example.org", at=time.time(), account_id=account)
    options = ClientOptions(server.url, session=token, account_id=account, timeout_s=300.0)
    with Client(options) as client:
        return account, client.datasets.create(SAMPLES[0], sample_file(SAMPLES[0])).id


@pytest.mark.parametrize(
    "n_rows", [0, 2, SAMPLE, MANY], ids=["nothing", "two rows", "a sample", "many rows"]
)
@pytest.mark.parametrize("role", [*ROLES, OPERATOR])
def test_axe_finds_nothing_on_any_page_of_a_role(
    quiet_page, workbench, server, state, role, n_rows, request
):
    if n_rows == MANY:
        account, dataset = request.getfixturevalue("account_with_many_rows")
    else:
        account, dataset = account_of(server, state, n_rows)
    email = SAM if role == OPERATOR else f"{role}{n_rows}@example.org"
    member = "developer" if role == OPERATOR else role
    token = begin_session(state, email, at=time.time(), account_id=account, role=member)
    with Client(ClientOptions(server.url, session=token, account_id=account)) as client:
        who = client.auth.session()
    page, found, section = quiet_page, {}, ""
    cookie = f"steelyard_workbench_{urlsplit(workbench.url).port}"
    page.context.add_cookies([{"name": cookie, "value": token, "url": workbench.url}])
    visit(page, f"page=home&account={account}&dataset={dataset}")
    menu = page.get_by_role("navigation", name="Pages").first
    titles = {each.name: each.title for each in sections_for(who)}
    for entry in entries_for(who):
        if entry.section != section:
            section = entry.section
            menu.get_by_role("button", name=titles[section], exact=True).click()
        if section and len(tabs_for(who, entry.slug)) > 1:
            label = "Rows" if entry.slug == DATASETS and dataset else entry.title
            page.get_by_role("tab", name=label, exact=True).click()
        expect(page).to_have_url(re.compile(f"page={entry.slug}"))
        expect(page.locator(".skeleton:visible")).to_have_count(0)
        found[entry.slug] = [*stays_worse(page).items(), *commands_on(page)]
    assert not any(found.values()), found
