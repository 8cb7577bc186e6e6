"""Serving the workbench: the first drawing, a warm-up page, and browsers that go away."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import threading
import urllib.request
import weakref
from urllib.parse import urlsplit

import pytest

from support.waiting import slowed, wait_until

pytest.importorskip("panel", reason="needs the workbench extra")

import httpx
import panel as pn
from bokeh.models import ImportedStyleSheet
from bokeh.server.server import Server
from bokeh.util.token import generate_jwt_token, generate_session_id
from tornado.httputil import HTTPServerRequest, RequestStartLine
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError

import steelyard
from steelyard_workbench.frame.navigation import entry_of
from steelyard_workbench.frame.serving import (
    Served,
    end_oldest,
    free_port,
    on_loop_error,
    warm_up,
)
from steelyard_workbench.kit.components.browser_window import SYSTEM
from steelyard_workbench.kit.theme import colours_of
from steelyard_workbench.kit.views import skeleton

SOON = 30


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing") as running:
        yield running


@pytest.fixture(scope="module")
def dataset(server):
    decision = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
    rows = [
        {"context": f"case {n}", "decisions": [decision], "targets": {"team": "billing"}}
        for n in range(20)
    ]
    return server.client.datasets.create("desk", rows)


@pytest.fixture
def served(server):
    workbench = Served(server.url)
    yield workbench
    workbench.stop()


def listens(url):
    where = urlsplit(url)
    with socket.socket() as asking:
        return asking.connect_ex((where.hostname, where.port)) == 0


def test_a_workbench_listens_once_it_is_made(server, monkeypatch):
    monkeypatch.setattr(Server, "__init__", slowed(Server.__init__, 0.5))
    workbench = Served(server.url)
    try:
        assert listens(workbench.url)
    finally:
        wait_until(lambda: listens(workbench.url))  # one that does not yet is not stopped
        workbench.stop()


def test_a_port_that_something_listens_on_is_refused():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="is taken by something else"):
            Served("http://127.0.0.1:1", port=other.getsockname()[1])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_workbench_that_cannot_bind_is_not_waited_for(monkeypatch):
    def fail(*_, **__):
        raise OSError("Address already in use")

    monkeypatch.setattr(Server, "__init__", fail)
    monkeypatch.setattr("steelyard_workbench.frame.serving._START_S", 10.0)
    with pytest.raises(OSError, match="ended before it listened"):
        Served("http://127.0.0.1:1")


@pytest.mark.slow
def test_rows_are_in_the_page_before_a_browser_has_drawn_it_and_later_parts_are_not(
    served, dataset
):
    address = f"{served.url}/?page=datasets&dataset={dataset.id}"
    with urllib.request.urlopen(address, timeout=SOON) as answer:
        answer.read()
    page = served.apps[-1].page
    head, labels, doubts, foot = page.parts
    wait_until(lambda: head.state == labels.state == "shown" and page.rows.table.total == 20)
    assert (doubts.state, foot.state) == ("loading", "loading")


def test_a_frame_is_sent_before_its_page_is_made_and_says_that_it_was_not(served, monkeypatch):
    has_frame = threading.Event()

    def fail(*_):
        assert has_frame.wait(SOON)
        raise RuntimeError("broken")

    monkeypatch.setattr("steelyard_workbench.frame.serving.App", fail)
    monkeypatch.setattr("steelyard_workbench.frame.visitors.Visitors.may_sign_in", False)
    with httpx.stream("GET", f"{served.url}/?page=live&theme=dark", timeout=SOON) as answer:
        pieces = answer.iter_text()
        frame = next(pieces)
        while "scripts.js" not in frame:
            frame += next(pieces)
        has_frame.set()
        rest = "".join(pieces)
    assert answer.headers["Cache-Control"] == "no-store"
    for part in (
        '<p class="title">Live</p>',
        "<div>Watch</div>",
        skeleton(entry_of("live").shape, colours_of("dark")["line"]),
        f"background: {colours_of('dark')['ground']}",
    ):
        assert part in frame
    assert "firstFrame.fail(" in rest
    assert not re.search("broken|Traceback|token", rest)


def test_a_page_has_its_scripts_in_one_file_that_browsers_keep(served):
    assert httpx.get(f"{served.url}/scripts.js").status_code == 404  # no page has named them yet
    page = httpx.get(served.url, timeout=SOON).text
    (address,) = re.findall(r'src="(scripts.js[^"]+)"', page)
    assert not re.search(r'<script[^>]+src="static/(?!extensions/panel-material-ui/)', page)
    answer = httpx.get(f"{served.url}/{address}")
    assert "immutable" in answer.headers["Cache-Control"]
    places = [answer.text.index(part) for part in ("Tabulator v6", "core/dom", "panel.models.esm")]
    assert answer.text.startswith("'use strict'")
    assert places == sorted(places)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_part_is_made_with_the_theme_that_its_page_begins_with(served, theme):
    httpx.get(served.url, cookies={SYSTEM: theme}, timeout=SOON)
    assert served.apps[-1].account_button.dark_theme == (theme == "dark")


class TestOtherSites:
    """The requests that another site's page can make a browser send to the workbench."""

    @pytest.mark.parametrize("path", ["/", "/static/js/bokeh.min.js", "/nowhere"])
    @pytest.mark.parametrize(
        "host", ["evil.example", "127.0.0.1.evil.example:80", "[::1]:8421", "[::1"]
    )
    def test_another_name_gets_nothing(self, served, path, host):
        response = httpx.get(f"{served.url}{path}", headers={"Host": host}, timeout=SOON)
        assert response.status_code == 421
        assert response.text.startswith("This workbench is not called that")
        assert served.apps == []  # nor is a page made for it

    @pytest.mark.slow
    def test_a_name_of_the_setting_is_answered(self, server):
        workbench = Served(server.url, hosts="bench.example")
        try:
            response = httpx.get(workbench.url, headers={"Host": "bench.example"}, timeout=SOON)
        finally:
            workbench.stop()
        assert response.status_code == 200

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("origin", "is_signed", "is_opened"),
        [("own", True, True), ("own", False, False), ("http://evil.example", True, False)],
    )
    def test_a_websocket_needs_its_page_and_a_signed_session(
        self, served, origin, is_signed, is_opened
    ):
        page = httpx.get(served.url, timeout=SOON).text
        token = re.search(r'"token":"([^"]+)"', page)[1]
        if not is_signed:
            token = generate_jwt_token(generate_session_id(signed=False), signed=False)
        where = urlsplit(served.url)
        head = [
            "GET /ws HTTP/1.1",
            f"Host: {where.netloc}",
            f"Origin: {served.url if origin == 'own' else origin}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: c3RlZWx5YXJkc3RlZWx5YQ==",
            f"Sec-WebSocket-Protocol: bokeh, {token}",
        ]
        with socket.create_connection((where.hostname, where.port), timeout=SOON) as connection:
            connection.sendall("\r\n".join([*head, "", ""]).encode())
            answer = b""
            while b'"ACK"' not in answer and (piece := connection.recv(4096)):
                answer += piece
                if b" 403 " in answer or b"\r\n\r\n\x88" in answer:  # refused, or closed
                    break
        assert (b'"ACK"' in answer) is is_opened


def open_session(served, query=""):
    """Return a session of a browser that never connects."""
    port = urlsplit(served.url).port
    # A server listens a moment before Panel knows of it.
    [bokeh] = wait_until(
        lambda: [one for one, *_ in list(pn.state._servers.values()) if one.port == port]
    )
    request = HTTPServerRequest(start_line=RequestStartLine("GET", f"/?{query}", "HTTP/1.0"))
    return asyncio.run_coroutine_threadsafe(
        bokeh._tornado.applications["/"].create_session_if_needed(generate_session_id(), request),
        bokeh.io_loop.asyncio_loop,
    ).result(SOON)


def test_an_app_whose_browser_came_back_without_a_page_loads_from_here(served):
    session = open_session(served)
    sheets = {str(one.url) for one in session.document.select({"type": ImportedStyleSheet})}
    assert sheets
    assert not any(urlsplit(sheet).netloc for sheet in sheets)


@pytest.mark.slow
def test_a_hundred_pages_are_let_go_of_when_their_sessions_end(server, dataset, monkeypatch):
    bind = Server.__init__

    def bind_briefly(self, *given, **options):
        lifetimes = ("unused_session_lifetime_milliseconds", "check_unused_sessions_milliseconds")
        bind(self, *given, **options | dict.fromkeys(lifetimes, 100))

    def note(_, app):
        kept.extend((weakref.ref(app), weakref.ref(pn.state.curdoc)))

    monkeypatch.setattr(Server, "__init__", bind_briefly)
    monkeypatch.setattr(Served, "opened", note)
    workbench = Served(server.url)
    pages = ("home", "datasets", f"datasets&dataset={dataset.id}", "playground", "jobs", "live")
    kept = []
    try:
        for number in range(100):
            open_session(workbench, f"page={pages[number % len(pages)]}")

        def are_gone():
            gc.collect()
            return not [one for one in kept if one() is not None]

        wait_until(are_gone)
        assert len(kept) == 200
    finally:
        workbench.stop()


def test_of_pages_without_a_browser_the_oldest_end():
    class Session:
        is_ended = False

        def __init__(self, n_browsers, unused_ms):
            self.connection_count, self.milliseconds_since_last_unsubscribe = n_browsers, unused_ms

        def request_expiration(self):
            self.is_ended = True

    open_long = Session(1, 10_000.0)
    left = [Session(0, 250.0 * number) for number in range(40)]
    end_oldest([open_long, *left])
    assert not open_long.is_ended
    # 20 opened within the last 5 s may still connect.
    assert [session.is_ended for session in left] == [False] * 20 + [True] * 20


def test_a_page_is_drawn_without_a_visitor(served, dataset):
    warm_up(served.url)
    page = served.apps[0].page
    wait_until(lambda: page.list.total == 1)
    assert page.list.rows["id"].to_list() == [dataset.id]


def test_a_page_without_a_visitor_may_fail():
    warm_up(f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize(
    ("error", "n_told"),
    [(WebSocketClosedError(), 0), (StreamClosedError(), 0), (ValueError("broken"), 1)],
)
def test_a_browser_that_goes_away_is_no_error(error, n_told, caplog):
    async def fail():
        raise error

    async def leave_it():
        asyncio.get_running_loop().set_exception_handler(on_loop_error)
        task = asyncio.ensure_future(fail())
        await asyncio.wait([task])
        del task

    asyncio.run(leave_it())
    assert len(caplog.records) == n_told
