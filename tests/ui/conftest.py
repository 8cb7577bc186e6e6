"""The workbench in a real browser, with every outside host unresolvable and no error allowed."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest

import steelyard
from support.browser.browsing import SLOWLY, find_chromium

#: This one draws a page with two thirds of the CPU of the others, which are made to be seen.
CHROMIUM = find_chromium("chromium-headless-shell")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
]
_LOCAL = ("127.0.0.1", "localhost")
#: An error of Panel 1.9 that changes nothing: a part that is drawn again before its first drawing
#: came to anything looks for what that drew.
_UNMOUNTS = "Cannot read properties of null (reading 'unmount')"
#: Another, where it is in a frame of its own and was called by nothing: a table whose cells get other
#: styles before it is drawn scrolls back to where it was.
_SCROLLS_BACK = "Cannot read properties of undefined (reading 'rowManager')"


def pytest_collection_modifyitems(items):
    needs = pytest.mark.skip(reason="needs Chromium: apt-get install chromium")
    for item in items:
        if "quiet_page" in getattr(item, "fixturenames", ()):
            # Several waits of up to SLOWLY each.
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))
            if CHROMIUM is None:
                item.add_marker(needs)


def is_panels_own(error):
    """Whether an error of a page is one of the two of Panel's that change nothing."""
    frames = (error.stack or "").splitlines()[1:]
    scrolls_back = len(frames) == 1 and "/panel.min.js" in frames[0]
    return error.message == _UNMOUNTS or (error.message == _SCROLLS_BACK and scrolls_back)


@pytest.fixture(scope="module")
def browser():
    """A Chromium for the tests of a module: Playwright's loop must not outlive them."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    playwright.expect.set_options(timeout=SLOWLY)
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def server():
    """A server of its own for the tests of a module."""
    with steelyard.embed(engine="hashing") as running:
        yield running


@pytest.fixture(scope="module")
def workbench(server):
    """A workbench of that server."""
    pytest.importorskip("panel", reason="needs the workbench extra")
    from steelyard_workbench.frame.serving import Served

    served = Served(server.url)
    yield served
    served.stop()


@pytest.fixture(scope="module")
def signed_in(tmp_path_factory):
    """The cookie of an operator, for a workbench of its own with accounts and prices."""
    from steelyard.storage import open_state
    from steelyard_workbench.frame.serving import Served
    from support.accounts.console import begin_session

    home, email = tmp_path_factory.mktemp("people"), "sam@example.org"
    given = {"engine": "hashing", "accounts": "on", "operators": email, "prices": "hashing=12"}
    with steelyard.embed(home, **given) as running:
        state = open_state(f"sqlite:///{home / 'state.sqlite'}")
        token = begin_session(state, email, at=time.time())
        state.close()
        served = Served(running.url)
        port = urlsplit(served.url).port
        yield {"name": f"steelyard_workbench_{port}", "value": token, "url": served.url}
        served.stop()


@pytest.fixture
def quiet_page(browser, workbench):
    """A browser page that fails its test on any error of the page and any request to outside."""
    noise: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(SLOWLY)

    def note(error):
        if not is_panels_own(error):
            noise.append(error.stack or error.message)

    page.on("pageerror", note)
    page.on(
        "console",
        lambda said: noise.append(f"console: {said.text}") if said.type == "error" else None,
    )

    def check(request):
        where = urlsplit(request.url)
        if where.scheme in {"http", "https", "ws", "wss"} and where.hostname not in _LOCAL:
            noise.append(f"outside: {request.url}")

    page.on("request", check)
    page.home = workbench.url
    yield page
    context.close()
    assert noise == []
