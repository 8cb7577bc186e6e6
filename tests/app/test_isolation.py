"""Two servers in one process do not see each other, and a stopped one leaves nothing behind."""

from __future__ import annotations

import httpx
import pytest
from sanic import Sanic

from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def test_two_servers_answer_side_by_side(make_request):
    before = dict(Sanic._app_registry)
    with live_server() as first, live_server() as second:
        for server in (first, second):
            assert httpx.post(f"{server.url}/v1/decide", json=make_request()).status_code == 200
        assert (first.scorer.n_requests, second.scorer.n_requests) == (1, 1)
    assert Sanic._app_registry == before
    with live_server() as third:
        assert httpx.get(f"{third.url}/health").status_code == 200
