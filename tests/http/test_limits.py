"""Rates: a caller's minute, an address's minute, and the text of a refusal."""

from __future__ import annotations

import httpx
import pytest

from support.api.error_shape import assert_canonical_error
from support.servers.server_thread import exchange
from support.servers.stand_ins import REQUEST, stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def ask(server, key=None, path="/v1/decide"):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    body = REQUEST if path == "/v1/decide" else {}
    return httpx.post(f"{server.url}{path}", json=body, headers=headers)


def assert_limited(response):
    assert_canonical_error(response, 429, "rate_limited", retryable=True)
    assert 0 < float(response.headers["Retry-After"]) <= 120


def test_each_key_has_its_own_minute():
    with stand_in_server(accounts="on", requests_per_minute=2) as server:
        assert [ask(server, "full").status_code for _ in range(2)] == [200, 200]
        assert_limited(ask(server, "full"))
        assert ask(server, "inference").status_code == 200
        assert len(server.decisions.calls) == 3


def test_without_accounts_all_share_one():
    with stand_in_server(requests_per_minute=1) as server:
        assert ask(server, "a").status_code == 200
        assert_limited(ask(server, "b"))


def test_public_routes_count_by_address():
    with stand_in_server(public_requests_per_minute=2, requests_per_minute=1) as server:
        for _ in range(2):
            assert ask(server, path="/v1/lint").status_code == 422
        assert_limited(ask(server, path="/v1/playground/decide"))
        assert ask(server).status_code == 200


@pytest.mark.parametrize("path", ["/v1/health", "/health", "/metrics"])
def test_probes_are_not_counted(path):
    with stand_in_server(public_requests_per_minute=1, requests_per_minute=1) as server:
        assert [httpx.get(f"{server.url}{path}").status_code for _ in range(4)] == [200] * 4


def test_guessing_keys_is_limited():
    with stand_in_server(accounts="on", public_requests_per_minute=2) as server:
        assert [ask(server, f"guess{n}").status_code for n in range(2)] == [401, 401]
        assert_limited(ask(server, "guess3"))
        assert ask(server, "full").status_code == 200


def test_bytes_that_are_no_http_are_limited():
    with stand_in_server(public_requests_per_minute=2) as server:
        answers = [exchange(server.host, server.port, b"GET ?a HTTP/1.1\r\n\r\n") for _ in range(3)]
        assert [answer.split()[1] for answer in answers] == [b"400", b"400", b"429"]
        assert ask(server).status_code == 200


def test_typesafe_clients_get_milliseconds_too():
    with stand_in_server(public_requests_per_minute=1) as server:
        ask(server, path="/v1/systemone/translate")
        response = ask(server, path="/v1/systemone/translate")
    assert_limited(response)
    seconds = float(response.headers["Retry-After"])
    assert int(response.headers["retry-after-ms"]) == pytest.approx(seconds * 1000, abs=1)


def test_zero_sets_no_bound():
    with stand_in_server(requests_per_minute=0, public_requests_per_minute=0) as server:
        assert {ask(server).status_code for _ in range(20)} == {200}
        assert len(server.windows) == 0
