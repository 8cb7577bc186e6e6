"""A caller's view of an engine that is busy, late or gone."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from steelyard.errors import EngineUnavailableError
from support.api.error_shape import (
    assert_canonical_body,
    assert_canonical_error,
    parse_raw_response,
)
from support.servers.live_server import live_server
from support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def test_a_full_queue_answers_503_with_retry_after(make_request):
    with live_server(max_queue=1) as server, ThreadPoolExecutor(2) as pool:

        def ask(timeout_s: float = 60) -> httpx.Response:
            return httpx.post(f"{server.url}/v1/decide", json=make_request(), timeout=timeout_s)

        server.scorer.may_answer.clear()
        answers = [pool.submit(ask)]
        assert server.scorer.started.wait(timeout=10)
        answers.append(pool.submit(ask))
        wait_until(lambda: server.n_waiting == 1)
        refused = ask()
        # The next is refused from its head: its body never arrives.
        head = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
        with socket.create_connection((server.host, server.port), 20) as unread:
            unread.sendall(head)
            assert unread.recv(12) == b"HTTP/1.1 503"
        server.scorer.may_answer.set()
        error = assert_canonical_error(refused, 503, "engine_unavailable", retryable=True)
        assert error["details"] is None
        assert float(refused.headers["Retry-After"]) > 0
        assert [answer.result(timeout=30).status_code for answer in answers] == [200, 200]


def test_the_wait_for_the_engine_is_in_the_timing(make_request):
    with live_server() as server, ThreadPoolExecutor(1) as pool:
        server.scorer.may_answer.clear()
        asked = pool.submit(httpx.post, f"{server.url}/v1/decide", json=make_request())
        assert server.scorer.started.wait(timeout=10)
        threading.Timer(0.3, server.scorer.may_answer.set).start()
        timing = asked.result(timeout=10).json()["timing_ms"]
    assert timing["queue"] + timing["score"] >= 290
    assert timing["total"] >= timing["render"] + timing["queue"] + timing["score"] - 1


def test_no_answer_by_the_deadline_is_504(make_request):
    with live_server(deadline_s=0.2) as server, httpx.Client(base_url=server.url) as client:
        server.scorer.may_answer.clear()
        response = client.post("/v1/decide", json=make_request())
        assert_canonical_error(
            response, 504, "deadline_exceeded", message="charged", retryable=True
        )
        server.scorer.may_answer.set()


def test_a_request_that_does_not_arrive_is_408():
    def hurry(app):
        app.config.REQUEST_TIMEOUT = 0.2

    head = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
    with live_server(hurry) as server:
        status, headers, body = parse_raw_response(server.exchange(head))
        assert status == 408
        assert_canonical_body(body, headers, "request_timeout", retryable=True)
        assert server.scorer.n_requests == 0


def test_a_body_that_does_not_arrive_is_408():
    def hurry(app):
        app.config.RESPONSE_TIMEOUT = 0.2

    head = (
        b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    )
    with live_server(hurry) as server:
        status, headers, body = parse_raw_response(server.exchange(head))
        assert status == 408
        assert_canonical_body(body, headers, "request_timeout", retryable=True)
        assert server.scorer.n_requests == 0


def test_a_handler_that_outlives_the_servers_own_limit_is_504(make_request):
    def hurry(app):
        app.config.RESPONSE_TIMEOUT = 0.2

    with live_server(hurry) as server:
        server.scorer.may_answer.clear()
        response = httpx.post(f"{server.url}/v1/decide", json=make_request())
        assert_canonical_error(response, 504, "deadline_exceeded", retryable=True)
        server.scorer.may_answer.set()


def test_an_engine_that_is_gone_is_503(client, server, make_request):
    server.scorer.failure = EngineUnavailableError(
        "The engine stopped; try again.", retry_after_s=2
    )
    response = client.post("/v1/decide", json=make_request())
    assert_canonical_error(response, 503, "engine_unavailable", message="stopped", retryable=True)
    assert response.headers["Retry-After"] == "2"


@pytest.mark.parametrize("path", ["/v1/decide", "/v1/playground/decide"])
def test_a_stopped_client_leaves_the_server_answering(client, server, make_request, path):
    server.scorer.may_answer.clear()
    with pytest.raises(httpx.ReadTimeout):
        client.post(path, json=make_request(), timeout=0.2)
    server.scorer.may_answer.set()
    assert client.post(path, json=make_request()).status_code == 200
