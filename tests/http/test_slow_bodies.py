"""Bodies that stall, claim too much or are not wanted: cut off, with an answer."""

from __future__ import annotations

import json
import socket

import pytest

from support.api.error_shape import assert_canonical_body, parse_raw_response
from support.servers.stand_ins import REQUEST, stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def shared():
    with stand_in_server(body_timeout_s=0.2, body_bytes=1024) as running:
        yield running


@pytest.fixture
def server(shared):
    shared.decisions.reset()
    return shared


def head(*headers: str, path: str = "/v1/decide") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize(
    "sent",
    [
        head("Content-Length: 100"),
        head("Content-Length: 100") + b'{"context":',
        head("Transfer-Encoding: chunked") + b"5\r\nhel",
        head("Transfer-Encoding: chunked") + b"5\r\nhello\r\n",
    ],
)
def test_a_body_that_stalls_is_cut_off(server, sent):
    status, headers, body = parse_raw_response(server.exchange(sent))
    assert status == 408
    assert headers["Connection"] == "close"
    assert_canonical_body(body, headers, "request_timeout", retryable=True)
    assert server.decisions.calls == []


def test_a_body_that_trickles_is_cut_off(server):
    with socket.create_connection((server.host, server.port), timeout=10) as connection:
        connection.sendall(head("Content-Length: 1000"))
        received = b""
        connection.settimeout(0.05)
        while not received:
            connection.sendall(b" ")
            try:
                received = connection.recv(65536)
            except TimeoutError:
                continue
    assert received.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "sent",
    [
        head("Content-Length: 1025") + b" " * 1025,
        head("Transfer-Encoding: chunked", "Connection: close") + b"401\r\n" + b" " * 1025,
        head("Transfer-Encoding: chunked", "Connection: close") + b"fffffff\r\n",
        head("Content-Length: 99999999999") + b"{",
    ],
)
def test_a_body_over_the_bound_is_refused_before_it_is_read(server, sent):
    with socket.create_connection((server.host, server.port), timeout=10) as connection:
        connection.sendall(sent)
        answer = connection.recv(65536)
    status, headers, body = parse_raw_response(answer)
    assert status == 413
    assert_canonical_body(body, headers, "payload_too_large", message="1024")
    assert server.decisions.calls == []


def test_a_refusal_does_not_wait_for_the_body(server):
    with socket.create_connection((server.host, server.port), timeout=10) as connection:
        connection.sendall(head("Content-Length: 500", "Idempotency-Key: a b"))
        status, _, body = parse_raw_response(connection.recv(65536))
    assert (status, json.loads(body)["error"]["code"]) == (422, "invalid_request")


def test_the_connection_goes_on_after_a_refusal_whose_body_came(server):
    refused = head("Content-Length: 2", "Idempotency-Key: a b") + b"{}"
    body = json.dumps(REQUEST).encode()
    answered = head(f"Content-Length: {len(body)}", "Connection: close") + body
    received = server.exchange(refused + answered)
    assert received.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 200 OK" in received


def test_a_get_with_a_body_is_answered(server):
    sent = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
    assert server.exchange(sent).startswith(b"HTTP/1.1 200 OK")
