"""``Workbench()`` in a real JupyterLab, offline: it is drawn, and the selection comes back."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import expect

from support.waiting import started

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jupyterlab") is None, reason="needs the notebook extra"
    ),
]

ASKED = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
ROWS = [
    {"context": f"ticket {n} came in", "decisions": [ASKED], "targets": {"team": {"billing": 1.0}}}
    for n in range(8)
]
#: Tells what was chosen as soon as something is.
TELL = """import time
end = time.monotonic() + 120
while not (wb.session and wb.session.selected) and time.monotonic() < end:
    time.sleep(0.1)
print("chosen:", wb.session.selected, wb.selection["context"].to_list())
wb.stop()"""
_START_S = 60


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab of its own; gives its address and its folder."""
    home = tmp_path_factory.mktemp("lab")
    folder = home / "notebooks"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    places = {
        f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")
    }
    environment = {
        **os.environ,
        **places,
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "STEELYARD_ENGINE": "hashing",
    }
    told = (home / "log").open("wb")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            *(f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="),
            f"--notebook-dir={folder}",
        ],
        env=environment,
        stdout=told,
        stderr=told,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/api", process, home / "log")
        yield url, folder
    finally:
        process.terminate()
        process.wait(30)
        told.close()


@pytest.fixture
def open_notebook(lab, browser):
    """A function that opens a notebook of some cells and runs it; gives the page."""
    url, folder = lab
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    outside: list[str] = []

    def check(request):
        where = urlsplit(request.url)
        if where.scheme in {"http", "https", "ws", "wss"} and where.hostname != "127.0.0.1":
            outside.append(request.url)

    context.on("request", check)

    def run(name, *cells):
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook_of(cells)))
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{url}/lab/workspaces/{name}/tree/{name}.ipynb")
        expect(page.get_by_text("Python 3 (ipykernel) | Idle").first).to_be_visible(timeout=60_000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        return page

    yield run
    context.close()
    assert outside == []


def wait_for(url, process, log: Path):
    started(
        process,
        lambda: httpx.get(url).status_code == httpx.codes.OK,
        _START_S,
        last=lambda: f"JupyterLab did not start: {log.read_text()[-2000:]}",
        not_yet=(httpx.TransportError,),
    )


def notebook_of(cells):
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return {
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{n}",
                "metadata": {},
                "source": cell,
                "outputs": [],
                "execution_count": None,
            }
            for n, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def shown(page):
    return page.frame_locator("iframe[title='Steelyard workbench']")


def choose(page, number):
    """Open a row of the table that the cell shows."""
    shown(page).locator("[data-keys=ready]").wait_for(state="attached")
    shown(page).get_by_text(f"ticket {number} came in").first.click()


def test_a_cell_draws_it_and_returns_the_selection(open_notebook):
    page = open_notebook(
        "own",
        "from steelyard_workbench import Workbench\nwb = Workbench(page='datasets')\n"
        f"made = wb.client.datasets.create('tickets', {ROWS!r})\nwb",
        TELL,
    )
    shown(page).get_by_role("gridcell", name="tickets").click()
    choose(page, 2)
    expect(page.get_by_text("chosen: [2] ['ticket 2 came in']")).to_be_visible()


def test_two_notebooks_on_one_server_do_not_disturb_each_other(open_notebook, server):
    made = server.client.datasets.create("shared", ROWS)
    opens = (
        "from steelyard_workbench import Workbench\n"
        f"wb = Workbench({server.url!r}, page='datasets', dataset={made.id!r})\nwb"
    )
    first, second = (open_notebook(name, opens, TELL) for name in ("first", "second"))
    for page in (first, second):
        expect(shown(page).get_by_role("heading", name="shared")).to_be_visible(timeout=60_000)
    choose(first, 1)
    expect(first.get_by_text("chosen: [1] ['ticket 1 came in']")).to_be_visible()
    choose(second, 5)
    expect(second.get_by_text("chosen: [5] ['ticket 5 came in']")).to_be_visible()
