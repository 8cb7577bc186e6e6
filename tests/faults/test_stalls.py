"""Clients that stall, trickle or go away in the middle."""

from __future__ import annotations

import json
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

from faults.faulty_engines import FIRST, FaultyServer, faulty_server
from faults.processes import serve_process
from support.api.error_shape import assert_canonical_body, parse_raw_response
from support.servers.serving import REQUEST
from support.waiting import wait_until

BODY = json.dumps(REQUEST).encode()
HEAD = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
FULL_HEAD = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server(body_timeout_s=0.4) as server:
        yield server


@contextmanager
def connected(server: FaultyServer) -> Iterator[socket.socket]:
    url = server.http.base_url
    with socket.create_connection((url.host, url.port), timeout=30) as connection:
        yield connection


def trickle(connection: socket.socket, n_pieces: int) -> bytes:
    """Send a byte of a header now and then; return the response before all were sent."""
    for _ in range(n_pieces):
        try:
            connection.sendall(b"x")
            connection.settimeout(0.05)
            return connection.recv(65536)
        except TimeoutError:
            continue
    raise AssertionError("The server let the head trickle in.")


def hears_nothing(connection: socket.socket, seconds: float) -> bool:
    """Whether the server neither answers nor closes a connection in these seconds."""
    return select.select([connection], [], [], seconds)[0] == []


def wait_for_the_end(connection: socket.socket) -> None:
    """Wait until the server has closed a connection; fail when it does not."""
    with suppress(ConnectionError):
        while connection.recv(65536):
            pass


@pytest.mark.parametrize("sent", [b"P", HEAD[:30], HEAD, FULL_HEAD, FULL_HEAD + BODY[:20]])
def test_a_stalling_client_is_refused_and_cut_off(server: FaultyServer, sent: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(sent)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    status, headers, body = parse_raw_response(received)
    assert status == 408
    assert headers["Connection"] == "close"
    assert_canonical_body(body, headers, "request_timeout", retryable=True)
    assert server.ask().status_code == 200


def test_a_head_that_trickles_is_cut_off(server: FaultyServer) -> None:
    with connected(server) as connection:
        connection.sendall(HEAD + b"X-Slow: ")
        assert trickle(connection, 200).startswith(b"HTTP/1.1 408 ")


def test_the_time_of_a_head_is_counted_anew_for_each_request() -> None:
    with faulty_server(body_timeout_s=1.5) as server, connected(server) as connection:
        for is_first in (True, False):
            connection.sendall(FULL_HEAD[:40])
            assert hears_nothing(connection, 0.1)
            connection.sendall(FULL_HEAD[40:] + BODY)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
            if is_first:  # idle for longer than a head may take
                assert hears_nothing(connection, 1.6)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_server_process_outlives_two_hundred_that_trickle(tmp_path) -> None:
    with serve_process(tmp_path / "home", STEELYARD_BODY_TIMEOUT_S="1") as server:
        server.start()
        with ExitStack() as closing, httpx.Client(base_url=server.url, timeout=30) as http:
            slow = [
                closing.enter_context(socket.create_connection(("127.0.0.1", server.port), 30))
                for _ in range(200)
            ]
            for connection in slow:
                connection.sendall(HEAD + b"X-Slow: ")
            for _ in range(5):
                assert http.post("/v1/decide", json=REQUEST).status_code == 200
                for connection in slow:
                    with suppress(ConnectionError):  # on a busy machine it is cut off already
                        connection.sendall(b"x")
            for connection in slow:
                wait_for_the_end(connection)
            assert http.post("/v1/decide", json=REQUEST).status_code == 200


@pytest.mark.parametrize("key", ["gone", None])
def test_a_client_that_goes_away_leaves_no_operation_open(
    server: FaultyServer, key: str | None
) -> None:
    engine = server.engines[FIRST]
    before, n_calls = server.wallet(), engine.n_calls
    while engine.entered.acquire(blocking=False):
        pass
    engine.hang()
    header = b"" if key is None else f"Idempotency-Key: {key}\r\n".encode()
    with connected(server) as connection:
        connection.sendall(HEAD + header + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        assert engine.entered.acquire(timeout=30)
    wait_until(lambda: key is None or server.wallet()["reserved_usd"] != "0")
    engine.may_answer.set()
    wait_until(lambda: server.wallet()["reserved_usd"] == "0")
    if key is None:
        return
    assert server.wallet()["balance_usd"] != before["balance_usd"]
    charged = server.wallet()
    headers = {"Idempotency-Key": key}
    again = server.http.post("/v1/decide", content=BODY, headers={**_JSON, **headers})
    assert again.status_code == 200
    assert again.headers["Idempotency-Replayed"] == "true"
    assert server.wallet() == charged
    assert engine.n_calls == n_calls + 1


_JSON = {"Content-Type": "application/json"}
