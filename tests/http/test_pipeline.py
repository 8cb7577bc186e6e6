"""The steps of every request: ids, keys, scopes, idempotency keys, and refusals."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from steelyard.errors import (
    EngineUnavailableError,
    IdempotencyConflictError,
    Operation,
    RequestInProgressError,
)
from steelyard.http.access import address_group
from steelyard.operations.write import Replay
from support.api.error_shape import REQUEST_ID, assert_canonical_error
from support.servers.stand_ins import ANSWER, REQUEST, stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

DECIDE = "/v1/decide"


@pytest.fixture(scope="module")
def shared():
    with stand_in_server(accounts="on") as running:
        yield running


@pytest.fixture
def running(shared):
    shared.decisions.reset()
    return shared


@pytest.fixture
def ask(running):
    with httpx.Client(base_url=running.url) as http:

        def send(method="POST", path=DECIDE, key="full", **options):
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            headers |= options.pop("headers", {})
            json = REQUEST if method == "POST" else None
            return http.request(method, path, json=json, headers=headers, **options)

        yield send


class TestRequestIds:
    def test_a_callers_own_id_is_not_taken(self, ask):
        response = ask(headers={"X-Request-ID": "req_mine"})
        assert REQUEST_ID.fullmatch(response.headers["X-Request-ID"])
        assert response.headers["X-Request-ID"] != "req_mine"

    @pytest.mark.parametrize("path", ["/v1/models", "/v1/systemone", "/v1/systemone/nothing"])
    def test_typesafe_clients_read_it_under_their_own_name(self, ask, path):
        response = ask("POST", path, key=None)
        assert response.is_error
        assert response.headers["x-typesafe-request-id"] == response.headers["X-Request-ID"]

    def test_other_routes_have_it_once(self, ask):
        assert "x-typesafe-request-id" not in ask().headers


class TestKeys:
    def test_a_keyed_route_needs_one(self, ask, running):
        response = ask(key=None)
        assert_canonical_error(response, 401, "missing_api_key")
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert running.decisions.calls == []

    def test_a_wrong_one_is_refused(self, ask):
        response = ask(key="nonsense")
        assert_canonical_error(response, 401, "invalid_api_key")
        assert response.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize("key", [None, "nonsense", "read"])
    def test_a_public_route_looks_at_none(self, ask, key):
        assert ask("GET", "/openapi.json", key=key).status_code == 200

    @pytest.mark.parametrize(("key", "status"), [("full", 200), ("inference", 200), ("read", 403)])
    def test_scopes(self, ask, running, key, status):
        response = ask(key=key)
        assert response.status_code == status, response.text
        if status == 403:
            assert_canonical_error(response, 403, "key_scope", message="read")
            assert running.decisions.calls == []

    def test_the_handler_knows_the_caller(self, ask, running):
        ask(key="inference")
        [write] = running.decisions.calls
        caller = write.caller
        assert (caller.account_id, caller.key_id, caller.address) == (
            "acct_1",
            "key_inference",
            "127.0.0.1",
        )
        assert write.key is None

    def test_refusals_come_before_the_body(self, ask):
        response = ask(key="read", headers={"Content-Type": "text/plain"})
        assert_canonical_error(response, 403, "key_scope")


class TestOperatorRoutes:
    def test_this_machine_needs_no_key(self, ask):
        assert ask("GET", "/metrics", key=None).status_code == 200

    @pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
    def test_a_proxys_clients_need_one(self, ask, header):
        told = {header: "192.0.2.1"}
        refused = ask("GET", "/metrics", key=None, headers=told)
        assert_canonical_error(refused, 401, "missing_api_key")
        assert_canonical_error(ask("GET", "/metrics", key="read", headers=told), 403, "key_scope")
        assert_canonical_error(ask("GET", "/metrics", key="full", headers=told), 403, "key_scope")
        assert ask("GET", "/metrics", key="operator", headers=told).status_code == 200


class TestIdempotencyKeys:
    @pytest.mark.parametrize("key", ["a", "!" * 255, "00000000-0000-4000-8000-000000000000"])
    def test_a_key_reaches_the_handler(self, ask, running, key):
        assert ask(headers={"Idempotency-Key": key}).status_code == 200
        assert running.decisions.calls[0].key == key

    @pytest.mark.parametrize("key", ["", "a b", "a\x7f", "!" * 256, b"\xc3\xa9"])
    def test_a_malformed_key_is_refused(self, ask, running, key):
        response = ask(headers={"Idempotency-Key": key})
        assert_canonical_error(response, 422, "invalid_request", path=["header", "Idempotency-Key"])
        assert running.decisions.calls == []

    def test_two_keys_are_refused(self, running):
        keys = [("Idempotency-Key", "first"), ("Idempotency-Key", "second")]
        headers = [("Authorization", "Bearer full"), *keys]
        response = httpx.post(running.url + DECIDE, json=REQUEST, headers=headers)
        assert_canonical_error(response, 422, "invalid_request", path=["header", "Idempotency-Key"])
        assert running.decisions.calls == []

    def test_a_replay_says_so(self, ask, running):
        running.decisions.replay = Replay(msgspec.json.encode(ANSWER), "op_7")
        response = ask()
        assert response.headers["Idempotency-Replayed"] == "true"
        assert response.headers["X-Operation-ID"] == "op_7"
        assert "Idempotency-Replayed" not in ask("GET", "/health").headers


class TestRefusals:
    def test_a_pending_operation_is_named(self, ask, running):
        failure = running.decisions.failure = RequestInProgressError("It still runs.")
        failure.operation = Operation("op_7", "pending")
        response = ask()
        assert_canonical_error(response, 409, "request_in_progress", retryable=True)
        assert response.headers["Idempotency-Status"] == "pending"
        assert response.headers["X-Operation-ID"] == "op_7"
        assert float(response.headers["Retry-After"]) > 0

    def test_a_terminal_one_too(self, ask, running):
        failure = running.decisions.failure = EngineUnavailableError("It failed.")
        failure.operation = Operation("op_8", "terminal")
        response = ask()
        assert response.headers["Idempotency-Status"] == "terminal"
        assert response.headers["X-Operation-ID"] == "op_8"

    def test_a_refusal_before_acceptance_names_none(self, ask, running):
        running.decisions.failure = IdempotencyConflictError("Another request had this key.")
        response = ask()
        assert_canonical_error(response, 409, "idempotency_conflict")
        assert response.headers.keys().isdisjoint({"idempotency-status", "x-operation-id"})

    @pytest.mark.parametrize(("seconds", "text"), [(2.0, "2"), (0.25, "0.25"), (1e7, "10000000")])
    def test_retry_after_is_a_decimal_number(self, ask, running, seconds, text):
        running.decisions.failure = EngineUnavailableError("Busy.", retry_after_s=seconds)
        assert ask().headers["Retry-After"] == text


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_an_ipv6_network_counts_as_one_address(address, group):
    assert address_group(address) == group


@pytest.mark.parametrize(
    "path", ["/v1/decisions/log/%00", "/v1/datasets/a%0Ab", "/v1/models/a%7F/ready"]
)
def test_an_id_with_control_characters_is_unknown(ask, path):
    assert_canonical_error(ask("GET", path), 404, "not_found")
