"""Pages of other origins: the public routes for all of them, the keyed ones for none."""

from __future__ import annotations

import httpx
import pytest

from support.servers.stand_ins import stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

ORIGIN = {"Origin": "https://page.example"}
PREFLIGHT = {
    **ORIGIN,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type, idempotency-key",
}
PUBLIC = ["/v1/lint", "/v1/playground/decide", "/v1/systemone/translate"]


@pytest.fixture(scope="module")
def client():
    with stand_in_server() as server, httpx.Client(base_url=server.url) as http:
        yield http


@pytest.mark.parametrize("path", PUBLIC)
def test_a_page_may_ask_a_public_route(client, path):
    response = client.options(path, headers=PREFLIGHT)
    assert response.status_code == 204
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["Access-Control-Allow-Methods"] == "POST"
    allowed = response.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert set(PREFLIGHT["Access-Control-Request-Headers"].split(", ")) <= set(allowed)
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert response.headers["X-Request-ID"]


@pytest.mark.parametrize("path", PUBLIC)
def test_a_page_may_read_a_public_routes_refusal(client, path):
    response = client.post(path, headers=ORIGIN)
    assert response.status_code == 415
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["Access-Control-Expose-Headers"] == (
        "X-Request-ID, Retry-After, Idempotency-Status, X-Operation-ID"
    )


@pytest.mark.parametrize("path", ["/v1/decide", "/v1/systemone", "/metrics", "/v1/nothing"])
def test_no_page_may_ask_another_route(client, path):
    preflight = client.options(path, headers=PREFLIGHT)
    assert preflight.status_code in {404, 405}
    asked = client.post(path, headers=ORIGIN, json={})
    for response in (preflight, asked):
        assert not any(name.startswith("access-control") for name in response.headers)


def test_options_without_a_wish_is_a_method_like_another(client):
    response = client.options("/v1/lint")
    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"
