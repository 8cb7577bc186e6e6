"""GET /v1/capabilities and its alias: what a server says it can do."""

from __future__ import annotations

import httpx
import pytest

from live_server import live_server


@pytest.mark.parametrize("path", ["/v1/capabilities", "/v1/onehot"])
def test_it_says_what_the_server_can_do(client, path):
    found = client.get(path).json()
    assert found["models"] == client.get("/v1/models").json()["data"]
    assert found["recipes"] == client.get("/v1/recipes").json()["data"]
    assert found["training_available"] is True
    assert found["labeling_available"] is False
    assert found["prompt_tuning"] == {"available": False}
    assert found["warnings"] == []


def test_limits_are_whole_numbers_and_follow_the_settings(client, server):
    limits = client.get("/v1/capabilities").json()["limits"]
    published = {
        "dataset_bytes",
        "dataset_rows",
        "dataset_min_rows",
        "fine_tune_rows",
        "fine_tune_min_rows",
        "prompt_tuning_rows",
        "prompt_tuning_min_rows",
        "labeling_rows",
        "live_limit",
        "warm_limit",
    }
    assert published <= limits.keys()
    assert all(type(value) is int for value in limits.values())
    settings = server.services.settings
    assert limits["body_bytes"] == settings.body_bytes
    assert limits["dataset_bytes"] == settings.upload_bytes


def test_prices_are_for_a_million_tokens():
    with live_server(prices="hashing=12") as server:
        pricing = httpx.get(f"{server.url}/v1/capabilities").json()["pricing"]
        assert pricing == {"currency": "USD", "input_tokens_per_million_usd": {"hashing": "0.012"}}
