"""Long bodies: how many bytes of them may be under way at once, and who waits."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import httpx
import pytest

from steelyard.errors import QueueFullError
from steelyard.http import transfers
from steelyard.http.transfers import Transfers
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_rows
from support.servers.live_server import live_server
from support.servers.stand_ins import REQUEST, stand_in_server
from support.waiting import next_turn


async def settle():
    for _ in range(3):
        await next_turn()


def test_each_account_gets_half_and_others_the_rest():
    async def run():
        bound = Transfers(100)
        assert await bound.take("noisy", 30) == 30
        assert await bound.take("noisy", 20) == 20
        waiting = [asyncio.create_task(bound.take("noisy", 10)) for _ in range(2)]
        assert await bound.take("quiet", 500) == 50  # its whole share
        await settle()
        assert not any(one.done() for one in waiting)
        bound.give_back("noisy", 20)
        assert await asyncio.gather(*waiting) == [10, 10]
        assert bound.n_bytes == 100

    asyncio.run(run())


@pytest.mark.parametrize("ends", ["too late", "given up", "given up as its turn came"])
def test_who_does_not_get_a_turn_holds_nothing(monkeypatch, ends):
    monkeypatch.setattr(transfers, "WAIT_S", 0.01 if ends == "too late" else 30)

    async def run():
        bound = Transfers(100)
        await bound.take("one", 50)
        waiting = asyncio.create_task(bound.take("one", 10))
        await settle()
        if ends == "too late":
            with pytest.raises(QueueFullError) as caught:
                await waiting
            assert caught.value.retry_after_s > 0
        elif ends == "given up":
            waiting.cancel()
        bound.give_back("one", 50)
        if ends == "given up as its turn came":
            waiting.cancel()
        await asyncio.wait({waiting})
        assert bound.n_bytes == 0
        assert await bound.take("one", 50) == 50

    asyncio.run(run())


def test_only_so_many_wait(monkeypatch):
    monkeypatch.setattr(transfers, "MAX_WAITING", 1)

    async def run():
        bound = Transfers(10)
        await bound.take("one", 5)
        waiting = asyncio.create_task(bound.take("one", 1))
        await settle()
        with pytest.raises(QueueFullError):
            await bound.take("one", 1)
        waiting.cancel()

    asyncio.run(run())


LONG = {**REQUEST, "context": "w" * 100_000}


@pytest.mark.parametrize("form", ["announced", "chunked"])
def test_a_long_body_waits_for_room_and_a_short_one_does_not(monkeypatch, form):
    monkeypatch.setattr("steelyard.app.application.RECEIVED_BYTES", 240_000)
    monkeypatch.setattr(transfers, "WAIT_S", 0.2)
    body = json.dumps(LONG).encode()
    framing = (
        f"Content-Length: {len(body)}" if form == "announced" else "Transfer-Encoding: chunked"
    )
    head = (
        "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"{framing}\r\n\r\n"
    )
    with stand_in_server(body_bytes=120_000, body_timeout_s=20) as server:
        with socket.create_connection((server.host, server.port), timeout=10) as stalled:
            stalled.sendall(head.encode() + (b"" if form == "chunked" else body[:10]))
            url = f"{server.url}/v1/decide"
            deadline = time.monotonic() + 10
            while (response := httpx.post(url, json=LONG)).status_code != 503:
                assert time.monotonic() < deadline
            assert_canonical_error(response, 503, "queue_full", retryable=True)
            assert float(response.headers["Retry-After"]) > 0
            assert httpx.post(url, json=REQUEST).status_code == 200
        deadline = time.monotonic() + 10
        while httpx.post(url, json=LONG).status_code != 200:
            assert time.monotonic() < deadline


def test_a_reader_that_stops_is_cut_off(monkeypatch):
    monkeypatch.setattr("steelyard.app.application.SENT_BYTES", 8 * 1024 * 1024)
    monkeypatch.setattr(transfers, "WAIT_S", 5)
    rows = [{**row, "context": f"{n} " + "w" * 20_000} for n, row in enumerate(make_rows(700))]
    with live_server(body_timeout_s=0.5) as server:
        body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        headers = {"Content-Type": "application/x-ndjson", "X-Dataset-Name": "long"}
        made = httpx.post(f"{server.url}/v1/datasets", content=body, headers=headers, timeout=60)
        path = f"/v1/datasets/{made.json()['id']}/download"
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader.connect((server.host, server.port))
            reader.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert reader.recv(12) == b"HTTP/1.1 200"
            # The only place is taken until that reader is given up.
            whole = httpx.get(f"{server.url}{path}", timeout=60)
            assert whole.status_code == 200
            assert len(whole.content.splitlines()) == 700
            received = 0
            try:
                while piece := reader.recv(1 << 20):
                    received += len(piece)
            except ConnectionError:
                pass
            assert received < len(whole.content)
