"""Liveness, with what runs here; and readiness, which tries every part."""

from __future__ import annotations

import httpx
import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.version import __version__
from support.api.error_shape import assert_canonical_error
from support.servers.stand_ins import stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.mark.parametrize("path", ["/v1/health", "/health"])
def test_health_says_what_runs(client, server, path):
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
