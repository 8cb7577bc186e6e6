"""The caller of the workbench: each browser is distinguished at the server, as behind any proxy."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from steelyard.client import Client, ClientOptions
from steelyard.errors import NotSignedInError, RateLimitedError
from steelyard_workbench.frame import visitors
from support.servers.live_server import live_server


def request_of(peer, *told):
    headers = HTTPHeaders({"Host": "127.0.0.1"})
    for line in told:
        headers.add("X-Forwarded-For", line)
    context = SimpleNamespace(remote_ip=peer, protocol="http")
    return HTTPServerRequest(
        start_line=RequestStartLine("GET", "/", "HTTP/1.1"),
        headers=headers,
        connection=SimpleNamespace(context=context),
    )


def test_a_browser_that_asks_too_often_blocks_no_others(monkeypatch):
    # The client would wait for the minute to be over.
    monkeypatch.setattr(visitors, "ClientOptions", partial(ClientOptions, max_retries=0))
    given = {"accounts": "on", "public_requests_per_minute": 2}
    with live_server(trusted_proxies="127.0.0.1,192.0.2.0/28", **given) as server:
        shared = Client(ClientOptions(server.url))
        browsers = visitors.Visitors(server.url, shared, has_key=False, port=1)

        def ask(*request):
            asking = browsers.stranger(request_of(*request))
            with pytest.raises((NotSignedInError, RateLimitedError)) as refused:
                asking.auth.session()
            asking.close()
            return refused.type

        # A browser on this machine, and one behind a proxy that the server trusts, in whatever way.
        for one in (
            ("127.0.0.1",),
            ("192.0.2.1", "198.51.100.7"),
            ("127.0.0.1", "9, 203.0.113.5", "192.0.2.1"),
        ):
            assert [ask(*one) for _ in range(3)] == [*[NotSignedInError] * 2, RateLimitedError], one
        # What somebody made up left of a proxy's word is passed on, and not believed.
        assert ask("192.0.2.1", "8.8.8.8, 203.0.113.5") is RateLimitedError
        assert ask("192.0.2.1", "8.8.8.8, \u00e9, 127.0.0.1") is RateLimitedError
