"""GET /v1/capabilities and its alias: the server's features."""

from __future__ import annotations

import httpx
import pytest

from support.api.error_shape import assert_canonical_error
from support.families.grown_family import post
from support.families.learnable_rows import learnable_rows
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def test_it_lists_the_servers_functions():
    # A server of its own: fine-tunes of other tests change what the shared one says.
    with live_server() as server, httpx.Client(base_url=server.url, timeout=30) as http:
        for path in ("/v1/capabilities", "/v1/onehot"):
            found = http.get(path).json()
            assert found["models"] == http.get("/v1/models").json()["data"]
            assert found["recipes"] == http.get("/v1/recipes").json()["data"]
            assert found["training_available"] is True
            assert found["prompt_tuning"] == {"available": True}
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
        "fine_tune_queue",
        "fine_tune_queue_per_account",
    }
    assert published <= limits.keys()
    assert all(type(value) is int for value in limits.values())
    settings = server.services.settings
    assert limits["body_bytes"] == settings.body_bytes
    assert limits["dataset_bytes"] == settings.upload_bytes
    told = client.get("/v1/account").json()["effective_limits"]
    assert published <= told.keys()
    assert told.items() <= limits.items()


def test_full_queues_of_fine_tunes_are_reported():
    with (
        live_server(jobs="off", fine_tune_queue=1, fine_tune_queue_per_account=1) as server,
        httpx.Client(base_url=server.url, timeout=30) as http,
    ):

        def codes():
            warnings = http.get("/v1/capabilities").json()["warnings"]
            return [warning["code"] for warning in warnings]

        body = {"name": "n", "examples": learnable_rows(0), "evaluation_fraction": 0.3}
        dataset_id = post(http, "/v1/datasets", body)["id"]
        assert codes() == []
        job = post(http, "/v1/families", {"family": "router", "dataset_id": dataset_id})
        assert codes() == ["tenant_queue_full", "queue_full"]
        refused = http.post("/v1/families", json={"family": "b", "dataset_id": dataset_id})
        assert_canonical_error(refused, 429, "tenant_queue_full", retryable=True)
        post(http, f"/v1/fine-tuning/jobs/{job['id']}/cancel", {})
        assert codes() == []


def test_prices_are_for_a_million_tokens():
    given = {"fine_tune_price": 7, "fine_tune_minimum": 2_000, "keep_warm_price": 500_000_000}
    with live_server(prices="hashing=12", **given) as server:
        pricing = httpx.get(f"{server.url}/v1/capabilities").json()["pricing"]
        assert pricing == {
            "currency": "USD",
            "input_tokens_per_million_usd": {"hashing": "0.012"},
            "fine_tune_tokens_per_million_usd": "0.007",
            "fine_tune_minimum_usd": "0.000002",
            "keep_warm_hour_usd": "0.5",
        }
