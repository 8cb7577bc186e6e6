"""GET /v1/models, one model, and whether it answers."""

from __future__ import annotations

import re

import httpx
import pytest

from support.api.error_shape import assert_canonical_error
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def test_the_list_has_every_model_twice(client):
    body = client.get("/v1/models").json()
    assert body.keys() == {"data", "models", "has_more", "next_cursor"}
    assert [model["id"] for model in body["data"]] == ["hashing"]
    assert [model["name"] for model in body["models"]] == ["hashing", "jev-latest"]
    assert (body["has_more"], body["next_cursor"]) == (False, None)
    for model in body["models"]:
        assert model.keys() == {"name", "description", "release_date"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", model["release_date"])


def test_one_model_is_as_in_the_list(client):
    listed = client.get("/v1/models").json()["data"][0]
    assert client.get("/v1/models/hashing").json() == listed
    assert listed["status"] == "ready"
    assert listed["decision_price_nano"] == "0"
    assert listed["lora"] is None
    assert listed["max_input_tokens"] == listed["max_prompt_tokens"] == 65_536
    assert re.fullmatch("[0-9a-f]{64}", listed["evaluation_key"])


def test_prices_and_identities_are_each_models_own():
    with live_server(base_models="other=hashing", prices="other=7") as server:
        data = httpx.get(f"{server.url}/v1/models").json()["data"]
        assert [model["decision_price_nano"] for model in data] == ["0", "7"]
        assert len({model["evaluation_key"] for model in data}) == 2


@pytest.mark.parametrize("suffix", ["", "/ready"])
def test_names_that_no_model_has(client, suffix):
    unknown = client.get(f"/v1/models/router%403{suffix}")
    assert_canonical_error(unknown, 404, "not_found", message="router@3")
    malformed = client.get(f"/v1/models/router%40{suffix}")
    assert_canonical_error(malformed, 422, "invalid_reference", path=["path", "model"])


def test_readiness_is_reported_without_loading_anything(client, server):
    assert client.get("/v1/models/hashing/ready").json() == {"model": "hashing", "ready": True}
    assert server.scorer.n_requests == 0


def test_a_model_that_failed_is_not_ready(make_request):
    with live_server() as server, httpx.Client(base_url=server.url) as client:
        server.scorer.failure = RuntimeError("the engine is made to fail")
        assert client.post("/v1/decide", json=make_request()).status_code == 503
        ready = client.get("/v1/models/hashing/ready").json()
        assert ready == {"model": "hashing", "ready": False, "reason": "engine_unavailable"}
        warnings = client.get("/v1/capabilities").json()["warnings"]
        assert [(one["code"], one["model"]) for one in warnings] == [("engine_busy", "hashing")]
