"""Signals: unheard ones cost nothing, and listeners are called as Sanic calls them."""

from __future__ import annotations

import httpx
import pytest
from sanic.signals import SignalRouter

from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def test_a_request_looks_for_no_listener(monkeypatch):
    looked_up = []
    get = SignalRouter.get

    def watched(router, event, condition=None):
        looked_up.append(event)
        return get(router, event, condition)

    with live_server() as server:
        monkeypatch.setattr(SignalRouter, "get", watched)
        assert httpx.get(f"{server.url}/v1/health").status_code == 200
    assert not [event for event in looked_up if event.startswith("http.")]


def test_a_listener_is_notified():
    heard = []

    def listen(app):
        @app.signal("http.lifecycle.request")
        async def note(request):
            heard.append(request.path)

    with live_server(listen) as server:
        assert httpx.get(f"{server.url}/v1/health").status_code == 200
    assert heard == ["/v1/health"]
