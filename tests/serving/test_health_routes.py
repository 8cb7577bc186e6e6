"""Liveness, with the running parts; and readiness, which tries every part."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace

import httpx
import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.storage import probing
from steelyard.version import __version__
from support.api.error_shape import assert_canonical_error
from support.servers.live_server import live_server
from support.servers.stand_ins import stand_in_server
from support.waiting import PATIENCE_S, next_turn, wait_until

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.mark.parametrize("path", ["/v1/health", "/health"])
def test_health_names_the_running_model(client, server, path):
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["x-request-id"].startswith("req_")
    assert all(response.headers.values()), "a header says nothing"
    assert response.json() == {
        "status": "ok",
        "version": __version__,
        "model": server.scorer.name,
        "engine": server.scorer.engine,
    }
    assert server.scorer.n_requests == 0


def test_a_proxy_asks_whether_the_state_takes_requests(monkeypatch):
    """It needs no key; the server lives all the while."""
    monkeypatch.setattr(probing, "WAIT_S", 0.05)
    traffic = {"for": "traffic"}
    with live_server(accounts="on") as server:
        health = f"{server.url}/v1/health"
        assert httpx.get(health, params=traffic).json()["status"] == "ok"
        assert_canonical_error(httpx.get(health, params={"for": "fun"}), 422, "invalid_request")
        may_go_on = threading.Event()
        server.services.state.submit(lambda _: may_go_on.wait(PATIENCE_S))
        away = wait_until(
            lambda: (answer := httpx.get(health, params=traffic)).is_error and answer,
        )
        assert_canonical_error(away, 503, "storage_unavailable", retryable=True)
        assert float(away.headers["Retry-After"]) > 0
        assert httpx.get(health).status_code == 200
        may_go_on.set()
        wait_until(lambda: httpx.get(health, params=traffic).is_success)


def test_any_number_of_probes_ask_the_state_once(monkeypatch):
    monkeypatch.setattr(probing, "WAIT_S", PATIENCE_S)
    writes = []

    async def write(work, *, is_synced):
        await next_turn()
        writes.append(is_synced)

    now = time.monotonic()
    state = SimpleNamespace(read_at=now, written_at=now - 2 * PATIENCE_S, write=write)

    async def ask():
        probe = probing.StateProbe(state, lambda connection: None)
        await asyncio.gather(*(probe.check() for _ in range(50)))

    asyncio.run(ask())
    assert writes == [False]
    state.written_at = now
    asyncio.run(ask())
    assert writes == [False], "it was written a moment ago"


@pytest.mark.parametrize("path", ["/v1/ready", "/ready"])
def test_ready_tries_every_part(client, server, path):
    response = client.get(path)
    assert response.status_code == 200
    name = server.scorer.name
    assert response.json() == {"status": "ready", "parts": {"state": "ok", f"engine:{name}": "ok"}}
    assert server.scorer.n_requests == 1


@pytest.mark.parametrize(
    "failure", [RuntimeError("secret"), EngineUnavailableError("The engine stopped.")]
)
def test_an_engine_that_fails_is_named(client, server, failure):
    server.scorer.failure = failure
    response = client.get("/v1/ready")
    error = assert_canonical_error(response, 503, "engine_unavailable", retryable=True)
    assert [detail["part"] for detail in error["details"]] == [f"engine:{server.scorer.name}"]
    assert "secret" not in response.text
    assert float(response.headers["Retry-After"]) > 0
    assert client.get("/v1/health").status_code == 200


def test_a_state_that_cannot_be_written_is_named():
    with stand_in_server() as server:
        server.state.break_down()
        response = httpx.get(f"{server.url}/v1/ready")
    error = assert_canonical_error(response, 503, "storage_unavailable", retryable=True)
    assert [detail["part"] for detail in error["details"]] == ["state", "engine:stand-in"]
    assert "disk is full" in error["details"][0]["message"]
