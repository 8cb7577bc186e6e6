"""Messages to a browser: none waits for the next change."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
import panel_material_ui as pmui
from bokeh.client import pull_session
from bokeh.document import Document
from bokeh.server.connection import ServerConnection
from panel.io import document as of_panel

from faults.processes import free_port
from steelyard_workbench.frame.patches import send_what_comes_meanwhile
from support.waiting import next_turn, wait_until


class _Socket:
    """Takes messages; each write ends when the test says so."""

    def __init__(self):
        self.written, self.under_way = [], []

    def take(self, message):
        write = asyncio.get_running_loop().create_future()
        self.written.append(message)
        self.under_way.append(write)
        return [write]

    def end_writes(self):
        while self.under_way:
            self.under_way.pop().set_result(None)


class _Connection:
    def __init__(self):
        self._socket, self.protocol = _Socket(), self

    @staticmethod
    def create(_, events):
        return events


def test_changes_during_a_write_to_the_browser_are_sent(monkeypatch):
    monkeypatch.setitem(
        of_panel.extra_socket_handlers, _Socket, lambda conn, msg: conn._socket.take(msg)
    )
    monkeypatch.setattr(of_panel, "_dispatch_msgs", of_panel._dispatch_msgs)
    send_what_comes_meanwhile()

    async def write():
        document, connection = Document(), _Connection()
        socket = connection._socket
        for change in ("first", "second"):
            # The write before it ends, which nobody has heard of yet.
            socket.end_writes()
            of_panel.schedule_write_events(document, [connection], [change])
            await next_turn()
        for _ in range(9):
            socket.end_writes()
            await next_turn()
        return socket.written

    assert asyncio.run(write()) == [["first"], ["second"]]


def test_a_slow_browsers_value_does_not_replace_a_newer_one(monkeypatch):
    monkeypatch.setattr(of_panel, "_dispatch_msgs", of_panel._dispatch_msgs)
    send_what_comes_meanwhile()
    tabs = pmui.TabMenu(items=[{"label": "Excluded (2)"}])
    shown = tabs.get_root().data
    tabs.items = newer = [{"label": "Excluded (1)"}]
    shown.items = older = [{"label": "Excluded (2)"}]
    tabs._process_events({"items": older})
    assert tabs.items == shown.items == newer
    tabs._process_events({"active": 0, "items": older})
    assert (tabs.active, tabs.items) == (0, newer)


@pytest.mark.parametrize("in_thread", [False, True], ids=["on the loop", "in a thread"])
def test_changes_while_the_browser_draws_the_page_reach_it(monkeypatch, in_thread):
    for name in ("_dispatch_msgs", "_drain_unconnected_events"):
        monkeypatch.setattr(of_panel, name, getattr(of_panel, name))
    send_what_comes_meanwhile()
    sent, send = [], ServerConnection.send_patch_document
    monkeypatch.setattr(
        ServerConnection,
        "send_patch_document",
        lambda self, event: sent.append(event.attr) or send(self, event),
    )
    place, served, port = pn.Column("before"), [], free_port()

    def page():
        served.append(pn.state.curdoc)
        return place

    def change():
        with pn.io.hold():
            place[:] = [pn.Column("after")]

    async def change_in_thread():
        await asyncio.to_thread(change)

    def take():  # and draw nothing
        with suppress(OSError):
            return pull_session(url=f"http://127.0.0.1:{port}/")

    server = pn.serve(page, threaded=True, show=False, port=port)
    try:
        session = wait_until(take)
        served[0].add_next_tick_callback(change_in_thread if in_thread else change)
        wait_until(lambda: "children" in sent, 20)
        session.close()
    finally:
        server.stop()
