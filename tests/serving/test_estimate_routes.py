"""POST /v1/decide/estimate: the price of a request, and that it costs no more."""

from __future__ import annotations

from decimal import Decimal

import httpx
import pytest
from hypothesis import given, settings

from support.api.error_shape import assert_canonical_error
from support.decisions.strategies import requests
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

PATH = "/v1/decide/estimate"


@pytest.fixture(scope="module")
def priced():
    """A server with three models, one of them dearer than the default and one cheaper."""
    with (
        live_server(
            base_models="cheap=hashing,dear=hashing",
            prices="hashing=12,cheap=5,dear=40",
            requests_per_minute=0,
            public_requests_per_minute=0,
        ) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        yield client


def test_it_has_the_price_of_the_request(priced, make_request):
    estimate = priced.post(PATH, json=make_request()).json()
    tokens = estimate["input_tokens"]
    assert estimate.keys() == {
        "currency",
        "input_tokens",
        "tokenizer",
        "maximum_charge_usd",
        "models",
    }
    assert estimate["currency"] == "USD"
    assert estimate["tokenizer"].keys() == {"name", "revision", "sha256"}
    assert Decimal(estimate["maximum_charge_usd"]) == Decimal(12 * tokens) / 10**9
    assert [quote["id"] for quote in estimate["models"]] == ["hashing", "cheap"]
    assert Decimal(estimate["models"][1]["quote_usd"]) == Decimal(5 * tokens) / 10**9


def test_nothing_runs(client, server, make_request):
    assert client.post(PATH, json=make_request()).status_code == 200
    assert server.scorer.n_requests == 0


def test_a_free_model_costs_nothing(client, make_request):
    estimate = client.post(PATH, json=make_request()).json()
    assert estimate["maximum_charge_usd"] == "0"
    assert [quote["quote_usd"] for quote in estimate["models"]] == ["0"]


@given(requests())
@settings(max_examples=25, deadline=None)
def test_the_hold_is_the_estimate_and_the_charge_is_no_more(priced, request):
    request = {**request, "store": False}
    estimated = priced.post(PATH, json=request)
    answered = priced.post("/v1/decide", json=request)
    assert estimated.status_code == answered.status_code == 200
    estimate, answer = estimated.json(), answered.json()
    assert answer["charge"]["reserved_usd"] == estimate["maximum_charge_usd"]
    assert Decimal(answer["charge"]["amount_usd"]) <= Decimal(answer["charge"]["reserved_usd"])
    assert answer["usage"]["input_tokens"] == estimate["input_tokens"]
    assert answer["usage"]["tokenizer"] == estimate["tokenizer"]


@pytest.mark.parametrize(
    ("fields", "status", "code", "field"),
    [
        ({"decisions": []}, 422, "invalid_request", "decisions"),
        ({"model": "router@3"}, 404, "not_found", None),
        ({"context": "word " * 66_000}, 422, "context_too_long", "context"),
        (
            {
                "context": "<image:1>",
                "images": [{"id": 1, "media_type": "image/png", "data": "aGVsbG8="}],
            },
            422,
            "images_not_supported",
            "images",
        ),
    ],
)
def test_it_refuses_as_decide_does(client, make_request, fields, status, code, field):
    for path in (PATH, "/v1/decide"):
        refused = client.post(path, json=make_request(**fields))
        at = None if field is None else ["body", field]
        assert_canonical_error(refused, status, code, path=at)


def test_more_tokens_than_a_minute_allows_are_reported(make_request):
    with live_server(tokens_per_minute=10) as server:
        for path in (PATH, "/v1/decide"):
            response = httpx.post(f"{server.url}{path}", json=make_request())
            told = {"path": ["body", "context"], "message": "10 a minute"}
            assert_canonical_error(response, 422, "too_many_tokens", **told)
        assert server.scorer.n_requests == 0


def test_estimates_use_up_no_tokens(make_request):
    with live_server(tokens_per_minute=60) as server, httpx.Client(base_url=server.url) as client:
        for _ in range(5):
            assert client.post(PATH, json=make_request()).status_code == 200
        assert client.post("/v1/decide", json=make_request()).status_code == 200
        late = client.post("/v1/decide", json=make_request())
        assert_canonical_error(late, 429, "rate_limited", retryable=True)
        assert float(late.headers["Retry-After"]) > 0
