"""Statements of the API that a client may build on, asked of a real server over HTTP.

Each test is one statement that no test elsewhere makes of the service as a whole. Two servers: one
with accounts off, and one with accounts on, where an input token of the model has a price.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx
import pytest

from steelyard.errors import error_classes
from support.api.error_shape import assert_canonical_error
from support.api.openapi_validation import document, responses_checked
from support.servers.live_server import LiveServer, live_server

PRICE_NANO = 1_000

TEAM = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}
REFUND = {"id": "refund", "kind": "binary", "question": "Does the writer ask for money?"}
URGENCY = {
    "id": "urgency",
    "kind": "ordinal",
    "question": "How urgent is it?",
    "rubric": ["can wait", "today", "at once"],
}
CONTEXT = "My card was charged twice for order 118. I need the money back today."


def asking(*decisions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A decide request; of the three kinds, unless decisions are given."""
    return {"context": CONTEXT, "decisions": list(decisions) or [TEAM, REFUND, URGENCY], **fields}


SYSTEMONE = {
    "model": "jev-latest",
    "state": CONTEXT,
    "questions": {"refund": {"type": "noul", "instructions": "Does the writer ask for money?"}},
}
#: What anyone may call, with a body where one is needed.
PUBLIC = {
    ("POST", "/v1/playground/decide"): asking(),
    ("POST", "/v1/lint"): asking(),
    ("GET", "/v1/recipes"): None,
    ("POST", "/v1/systemone/translate"): SYSTEMONE,
}


@dataclass(frozen=True)
class Customer:
    """An account with credit on a server with accounts, and a client with its key."""

    server: LiveServer
    client: httpx.Client
    secret: str

    def balance(self) -> Decimal:
        """The account's balance."""
        return Decimal(self.wallet()["balance_usd"])

    def wallet(self) -> dict[str, str]:
        return self.client.get("/v1/account").json()["wallet"]


@pytest.fixture(scope="module", autouse=True)
def every_response_is_checked():
    with responses_checked():
        yield


@pytest.fixture(scope="module")
def open_server():
    with live_server() as server:
        yield server


@pytest.fixture
def client(open_server):
    open_server.scorer.reset()
    with httpx.Client(base_url=open_server.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def keyed_server():
    with live_server(accounts="on", prices=f"hashing={PRICE_NANO}") as server:
        yield server


@pytest.fixture(scope="module")
def customer(keyed_server):
    accounts = keyed_server.services.accounts
    account = accounts.create_account("customer").id
    accounts.add_credit(account, 10**12)
    secret = accounts.create_key(account=account).secret
    with httpx.Client(
        base_url=keyed_server.url, timeout=30, headers={"Authorization": f"Bearer {secret}"}
    ) as client:
        yield Customer(keyed_server, client, secret)


@pytest.fixture
def stranger(keyed_server):
    """A client without a key, before the server with accounts."""
    keyed_server.scorer.reset()
    with httpx.Client(base_url=keyed_server.url, timeout=30) as client:
        yield client


class TestWhatTheServiceDoes:
    def test_a_replay_is_not_charged_again(self, customer):
        before = customer.balance()
        headers = {"Idempotency-Key": "charged-once"}
        first = customer.client.post("/v1/decide", json=asking(), headers=headers)
        charge = first.json()["charge"]
        assert Decimal(charge["amount_usd"]) == (
            Decimal(first.json()["usage"]["input_tokens"] * PRICE_NANO) / 10**9
        )
        again = customer.client.post("/v1/decide", json=asking(), headers=headers)
        assert again.content == first.content
        assert again.headers["idempotency-replayed"] == "true"
        assert before - customer.balance() == Decimal(charge["amount_usd"])
        assert customer.wallet()["reserved_usd"] == "0"

    def test_an_estimate_runs_nothing_and_charges_nothing(self, customer):
        before = customer.wallet()
        customer.server.scorer.reset()
        estimate = customer.client.post("/v1/decide/estimate", json=asking()).json()
        assert Decimal(estimate["maximum_charge_usd"]) > 0
        assert customer.wallet() == before
        assert customer.server.scorer.n_requests == 0

    def test_the_playground_needs_no_account_and_stores_nothing(self, stranger, customer):
        answer = stranger.post("/v1/playground/decide", json=asking(store=True)).json()
        assert (answer["model"], answer["stored"]) == ("hashing", False)
        report = {"decision_id": answer["id"], "outcomes": {"team": "billing"}}
        refused = customer.client.post("/v1/feedback", json=report)
        assert_canonical_error(refused, 404, "not_found")

    def test_the_linter_runs_no_model_and_is_free(self, customer):
        before = customer.wallet()
        customer.server.scorer.reset()
        assert customer.client.post("/v1/lint", json=asking()).status_code == 200
        assert customer.server.scorer.n_requests == 0
        assert customer.wallet() == before

    def test_a_key_reads_its_account_and_never_changes_it(self, customer):
        for path in ("/v1/account", "/v1/account/keys"):
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                # What a session of the console may do is there; a key is told so.
                is_there = method.lower() in document()["paths"][path]
                told = (403, "console_only") if is_there else (405, "method_not_allowed")
                refused = customer.client.request(method, path, json={})
                assert_canonical_error(refused, *told)

    def test_a_key_is_never_shown_again(self, customer):
        listed = customer.client.get("/v1/account/keys")
        (key,) = listed.json()["data"]
        assert customer.secret.startswith("steelyard_sk_")
        assert customer.secret.startswith(key["prefix"])
        assert customer.secret not in listed.text
        assert len(key["prefix"]) <= len("steelyard_sk_") + 8

    def test_amounts_are_exact_decimal_strings(self, customer):
        answer = customer.client.post("/v1/decide", json=asking()).json()
        estimate = customer.client.post("/v1/decide/estimate", json=asking()).json()
        discovery = customer.client.get("/v1/onehot").json()
        amounts = [*amounts_of(answer), *amounts_of(estimate), *amounts_of(customer.wallet())]
        amounts += amounts_of(discovery)
        assert len(amounts) > 8
        for amount in amounts:
            assert isinstance(amount, str)
            assert format(Decimal(amount), "f") == amount


def amounts_of(value: Any) -> list[Any]:
    """Every value under a name that ends in ``_usd``; null left out, a mapping opened."""
    found = []
    if isinstance(value, dict):
        for name, inner in value.items():
            if name.endswith("_usd") and inner is not None:
                found += list(inner.values()) if isinstance(inner, dict) else [inner]
            else:
                found += amounts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            found += amounts_of(inner)
    return found


class TestAuthentication:
    @pytest.mark.parametrize(("method", "path"), list(PUBLIC))
    def test_public_calls_need_no_key_where_accounts_are_on(self, stranger, method, path):
        body = PUBLIC[method, path]
        for headers in ({}, {"Authorization": "Bearer steelyard_sk_wrong"}):
            response = stranger.request(method, path, json=body, headers=headers)
            assert response.status_code == 200

    def test_every_other_call_of_a_customer_needs_one(self):
        is_public = {
            (method.upper(), path)
            for path, item in document()["paths"].items()
            for method, operation in item.items()
            if operation["security"] == [] and "operations" not in operation["tags"]
        }
        documents = {("GET", "/openapi.json"), ("GET", "/llms.txt")}
        # Whoever signs in has nothing yet, and a provider of payments signs its notices.
        console = {
            ("GET", "/v1/auth"),
            ("POST", "/v1/auth/email"),
            ("POST", "/v1/auth/email/verify"),
            ("POST", "/v1/auth/oidc"),
            ("POST", "/v1/auth/oidc/verify"),
            ("POST", "/v1/auth/passkey"),
            ("POST", "/v1/auth/passkey/verify"),
            ("POST", "/v1/billing/providers/{provider}/events"),
        }
        assert is_public == PUBLIC.keys() | documents | console

    @pytest.mark.parametrize(
        "authorization", [None, "Bearer anything", "Bearer onehot_sk_abc", "Basic dTpw", "nonsense"]
    )
    def test_with_accounts_off_any_bearer_will_do(self, client, authorization):
        headers = {} if authorization is None else {"Authorization": authorization}
        assert client.post("/v1/decide", json=asking(), headers=headers).status_code == 200


class TestRequests:
    @pytest.mark.parametrize("path", ["/v1/decide", "/v1/decide/estimate", "/v1/lint"])
    def test_a_request_has_1_to_64_decisions(self, client, path):
        many = [{**REFUND, "id": f"d{number}"} for number in range(65)]
        assert client.post(path, json=asking(*many[:64])).status_code == 200
        for decisions in ([], many):
            refused = client.post(path, json={"context": CONTEXT, "decisions": decisions})
            error = assert_canonical_error(refused, 422, "invalid_request")
            assert [one["path"] for one in error["details"]] == [["body", "decisions"]]

    @pytest.mark.parametrize("name", ["n" * 128, "n" * 129, ""])
    def test_names_have_1_to_128_characters(self, client, name):
        response = client.post("/v1/lint", json=asking({**REFUND, "id": name}, model="m" * 128))
        assert response.status_code == (200 if len(name) == 128 else 422)

    @pytest.mark.parametrize("fallback", ["auto", "none", ["hashing"], ["gone", "hashing"], None])
    def test_fallback_has_every_form(self, client, fallback):
        answer = client.post("/v1/decide", json=asking(fallback=fallback)).json()
        assert answer["fallback"] is None

    def test_fields_of_both_descriptions_are_taken_together(self, client):
        request = asking(
            model="hashing",
            fallback="auto",
            temperature=0.8,
            independent=True,
            store=False,
            metadata={"ticket": "118", "attempt": 2, "is_new": True, "note": None},
        )
        answer = client.post("/v1/decide", json=request).json()
        assert answer["stored"] is False
        assert answer["temperature"] == {"team": 0.8, "refund": 0.8, "urgency": 0.8}

    @pytest.mark.parametrize("field", ["independent", "store", "metadata"])
    def test_and_are_fields_of_the_request_alone(self, client, field):
        refused = client.post("/v1/decide", json=asking({**REFUND, field: None}))
        path = ["body", "decisions", 0, field]
        assert_canonical_error(refused, 422, "invalid_request", path=path)

    def test_both_spellings_of_a_policy_act_alike(self, client):
        matrix = {"refund": {"yes": 0, "no": 8}, "ask": {"yes": 1, "no": 1}}
        ours = {**REFUND, "policy": {"action_costs": matrix, "abstain_below": 0.999}}
        seeds = {**REFUND, "costs": matrix, "abstain": {"min_probability": 0.999}}
        results = [
            client.post("/v1/decide", json=asking(one)).json()["decisions"]["refund"]
            for one in (ours, seeds)
        ]
        assert results[0] == results[1]
        assert results[0]["action"] == results[0]["policy"]["action"] == "abstain"
        mixed = client.post("/v1/decide", json=asking({**ours, "costs": matrix}))
        assert_canonical_error(mixed, 422, "invalid_request")

    @pytest.mark.parametrize("outcomes", ["yes", 2, True, [], ["one"], {}])
    def test_outcomes_of_no_known_form_are_refused(self, client, outcomes):
        refused = client.post("/v1/decide", json=asking({**TEAM, "outcomes": outcomes}))
        error = assert_canonical_error(refused, 422, "invalid_request")
        assert error["details"][0]["path"][:4] == ["body", "decisions", 0, "outcomes"]

    def test_images_are_refused_by_models_that_read_text(self, client):
        image = {"id": 1, "media_type": "image/png", "data": "iVBORw0KGgo="}
        refused = client.post("/v1/decide", json=asking(images=[image]))
        assert_canonical_error(refused, 422, "images_not_supported")


class TestAnswers:
    def test_every_decision_has_its_fields_and_no_other(self, client):
        decisions = client.post("/v1/decide", json=asking()).json()["decisions"]
        always = {"kind", "probabilities", "top", "p_top", "action"}
        assert decisions["team"].keys() == decisions["refund"].keys() == always
        assert decisions["urgency"].keys() == always | {"expected_level"}

    def test_a_policy_is_reported_where_one_was_asked(self, client):
        asked = {**TEAM, "policy": {"abstain_below": 0.0}}
        answer = client.post("/v1/decide", json=asking(asked, REFUND)).json()["decisions"]
        assert answer["team"]["policy"]["action"] == answer["team"]["action"]
        assert "policy" not in answer["refund"]

    def test_fallback_and_charge_are_always_there(self, client, customer):
        free = client.post("/v1/decide", json=asking()).json()
        paid = customer.client.post("/v1/decide", json=asking()).json()
        for answer in (free, paid):
            assert answer["fallback"] is None
            assert answer["charge"].keys() >= {"operation_id", "currency", "amount_usd"}
        assert free["charge"]["amount_usd"] == "0"
        assert Decimal(paid["charge"]["amount_usd"]) > 0

    def test_usage_has_the_names_of_every_version(self, client):
        usage = client.post("/v1/decide", json=asking()).json()["usage"]
        assert usage.keys() == {"input_tokens", "prompt_tokens", "tokenizer", "decisions"}
        assert usage["input_tokens"] == usage["prompt_tokens"] > 0
        assert usage["decisions"] == 3

    def test_recipes_are_the_same_to_everyone(self, client):
        recipes = client.get("/v1/recipes").json()["data"]
        assert recipes
        for path in ("/v1/onehot", "/v1/capabilities"):
            assert client.get(path).json()["recipes"] == recipes

    def test_models_say_the_bounds_of_a_request(self, client):
        (model,) = client.get("/v1/models").json()["data"]
        assert model["max_questions"] == 64
        assert model["max_input_tokens"] == model["max_prompt_tokens"]


class TestErrors:
    def test_every_refusal_says_whether_another_attempt_may_succeed(self):
        error = document()["components"]["schemas"]["ErrorInfo"]
        assert set(error["required"]) == {"code", "message", "retryable", "request_id"}

    def test_codes_that_clients_know_are_there(self):
        known = {
            "invalid_request",
            "too_many_tokens",
            "context_too_long",
            "images_not_supported",
            "missing_api_key",
            "invalid_api_key",
            "key_scope",
            "key_cap_reached",
            "insufficient_credit",
            "not_found",
            "method_not_allowed",
            "payload_too_large",
            "unsupported_encoding",
            "unsupported_media_type",
            "rate_limited",
            "idempotency_conflict",
            "request_in_progress",
            "outcome_unknown",
            "idempotency_response_expired",
            "engine_unavailable",
            "deadline_exceeded",
            "internal_error",
            "invalid_reference",
        }
        assert known <= error_classes().keys()


class TestAddresses:
    def test_paths_of_customers_are_prefixed(self):
        for path, item in document()["paths"].items():
            for operation in item.values():
                is_customers = not {"operations", "documents"} & set(operation["tags"])
                assert path.startswith("/v1/") or not is_customers

    def test_the_operators_routes_are_described_too(self):
        assert {"/metrics", "/v1/ready"} <= document()["paths"].keys()

    def test_no_path_ends_with_a_slash_and_none_redirects(self, client):
        for path, item in document()["paths"].items():
            assert not path.endswith("/")
            for method in item:
                response = client.request(method.upper(), f"{path}/")
                assert_canonical_error(response, 404, "not_found")

    def test_the_other_vendors_client_changes_its_address_and_key_alone(self, customer):
        """Names of its models mean the default model, and its request id is under its name."""
        answer = customer.client.post("/v1/systemone", json=SYSTEMONE)
        assert answer.json()["model"] == "hashing"
        assert answer.json()["answers"]["refund"]["type"] == "noul"
        assert answer.headers["x-typesafe-request-id"] == answer.headers["x-request-id"]
