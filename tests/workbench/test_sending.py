"""What is written to a browser: nothing waits for the next change."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel_material_ui as pmui
from bokeh.document import Document
from panel.io import document as of_panel

from steelyard_workbench.sending import send_what_comes_meanwhile
from support.waiting import next_turn


class _Socket:
    """Takes what is written; each write ends when the test says so."""

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


def test_what_comes_while_the_browser_is_written_to_is_sent(monkeypatch):
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


def test_what_a_slow_browser_sends_back_does_not_take_the_place_of_what_is_newer(monkeypatch):
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
