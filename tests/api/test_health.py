"""GET /v1/health and its alias: liveness, and what runs here."""

from __future__ import annotations

import pytest

from steelyard.version import __version__


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
