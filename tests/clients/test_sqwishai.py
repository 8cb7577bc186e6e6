"""sqwishai 0.5.0, blocking and asynchronous."""

from __future__ import annotations

import asyncio
import importlib.metadata
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import httpx
import pytest
from sqwishai import APIError, AsyncOneHot, OneHot

from steelyard.ledger.money import from_usd
from support.servers.live_server import LiveServer, live_server
from support.waiting import wait_until

CONTEXT = "My card was charged twice for order 118."
DECISIONS = [
    {
        "id": "team",
        "question": "Who should own this?",
        "outcomes": {"billing": "money", "other": None},
    },
    {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"},
    {
        "id": "urgency",
        "kind": "ordinal",
        "question": "How urgent is it?",
        "outcomes": ["0", "1"],
        "rubric": ["can wait", "today"],
        "policy": {"abstain_below": 1},
    },
]
QUESTIONS = {
    "refund": {"type": "noul", "instructions": "Is money asked back?"},
    "team": {"type": "choice", "criteria": {"billing": None, "other": None}},
}


@pytest.fixture
def client(server: LiveServer):
    with OneHot(server.url, api_key="any-key", max_retries=0) as client:
        yield client


class Recorder:
    """Keeps every request that an httpx client sends, and the status of every answer."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.statuses: list[int] = []
        self.answered = threading.Event()

    def client(self) -> httpx.Client:
        return httpx.Client(
            event_hooks={"request": [self.requests.append], "response": [self._note]}
        )

    def _note(self, response: httpx.Response) -> None:
        self.statuses.append(response.status_code)
        self.answered.set()


def test_version():
    assert importlib.metadata.version("sqwishai") == "0.5.0"


def test_decide(client: OneHot):
    answer = client.decide(CONTEXT, DECISIONS)
    assert list(answer["decisions"]) == ["team", "refund", "urgency"]
    assert answer["decisions"]["urgency"]["action"] == "abstain"
    assert answer["model"] == "hashing"
    assert answer["charge"]["operation_id"].startswith("op_")
    assert answer["stored"]


def test_decide_with_options(client: OneHot):
    answer = client.decide(
        {"text": CONTEXT}, DECISIONS, model="hashing", fallback=["hashing"], temperature=2
    )
    assert answer["temperature"] == {"team": 2, "refund": 2, "urgency": 2}


def test_estimates(client: OneHot, server: LiveServer):
    estimate = client.estimate(CONTEXT, DECISIONS)
    assert Decimal(estimate["maximum_charge_usd"]) == 0
    assert client.systemone_estimate(CONTEXT, QUESTIONS, model="jev-latest")["input_tokens"] > 0
    assert server.scorer.n_requests == 0
    assert client.decide(CONTEXT, DECISIONS)["usage"]["input_tokens"] == estimate["input_tokens"]


def test_public_routes_need_no_key(server: LiveServer):
    with OneHot(server.url) as client:
        warnings = client.lint(CONTEXT, [{**DECISIONS[1], "question": "Is it not urgent?"}])
        assert warnings["warnings"][0]["rule"] == "negation"
        translation = client.systemone_translate(CONTEXT, QUESTIONS, model="jev-latest")
    assert {"context", "decisions"} == translation["request"].keys()


def test_systemone_and_its_translation_agree(client: OneHot):
    answers = client.systemone(CONTEXT, QUESTIONS, model="jev-latest")["answers"]
    translation = client.systemone_translate(CONTEXT, QUESTIONS, model="jev-latest")
    native = client.decide(**translation["request"])["decisions"]
    assert answers["refund"]["noul"] == native["refund"]["probabilities"]["yes"]
    assert answers["team"]["choice"] == native["team"]["top"]
    assert any("p_top" in note for note in translation["notes"])


def test_models(client: OneHot):
    (listed,) = client.models.list()
    assert client.models.get(listed["id"]) == listed
    assert client.models.ready(listed["id"]) == {"model": "hashing", "ready": True}
    with pytest.raises(APIError) as caught:
        client.models.get("router@3")
    assert (caught.value.status, caught.value.code) == (404, "not_found")


def test_discovery_and_account(client: OneHot):
    offered = client.capabilities()
    assert offered["models"] == client.models.list()
    assert offered["training_available"] is True
    assert offered["recipes"]
    account = client.account.get()
    assert account["accounts_enabled"] is False
    assert account["effective_limits"]
    assert client.account.keys.list(revoked=False, limit=10)["data"] == []


def test_invalid_request(client: OneHot):
    with pytest.raises(APIError) as caught:
        client.decide(CONTEXT, [{**DECISIONS[0], "outcomes": ["one"]}])
    error = caught.value
    assert (error.status, error.code, error.retryable) == (422, "invalid_request", False)
    assert error.details[0]["path"] == ["body", "decisions", 0, "outcomes"]
    assert error.request_id.startswith("req_")
    assert error.idempotency_status is None


def test_one_key_runs_once(client: OneHot, server: LiveServer):
    first = client.decide(CONTEXT, DECISIONS, idempotency_key="sqwishai-1")
    assert client.decide(CONTEXT, DECISIONS, idempotency_key="sqwishai-1") == first
    assert server.scorer.n_requests == 1
    with pytest.raises(APIError) as caught:
        client.decide("Other.", DECISIONS, idempotency_key="sqwishai-1")
    assert (caught.value.status, caught.value.code) == (409, "idempotency_conflict")
    # A refused request leaves its key free, and another route has keys of its own.
    client.systemone(CONTEXT, QUESTIONS, model="jev-latest", idempotency_key="sqwishai-1")
    with pytest.raises(APIError):
        client.decide(CONTEXT, [], idempotency_key="sqwishai-2")
    assert client.decide(CONTEXT, DECISIONS, idempotency_key="sqwishai-2")["id"] != first["id"]


def test_an_accepted_failure_is_terminal(server: LiveServer, fail_first):
    calls = fail_first(1)
    with OneHot(server.url, api_key="any-key", max_retries=2) as client:
        errors = []
        for _ in range(2):
            with pytest.raises(APIError) as caught:
                client.decide(CONTEXT, DECISIONS, idempotency_key="sqwishai-3", fallback="none")
            errors.append(caught.value)
    first, again = errors
    assert first.idempotency_status == again.idempotency_status == "terminal"
    assert first.operation_id == again.operation_id
    assert first.code == again.code == "engine_unavailable"
    assert len(calls) == 1


def test_a_key_that_still_runs_is_one_operation(client: OneHot, server: LiveServer):
    server.scorer.may_answer.clear()

    def decide() -> dict:
        return client.decide(CONTEXT, DECISIONS, idempotency_key="sqwishai-4")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(decide)
        assert server.scorer.started.wait(10)
        second = threads.submit(decide)
        server.scorer.may_answer.set()
        assert first.result(timeout=30) == second.result(timeout=30)
    assert server.scorer.n_requests == 1


def test_gzip_bodies(server: LiveServer):
    recorder = Recorder()
    context = "My card was charged twice. " * 500
    with (
        recorder.client() as http,
        OneHot(server.url, api_key="any-key", http_client=http, gzip_over=1000) as client,
    ):
        zipped = client.decide(context, DECISIONS, idempotency_key="sqwishai-5")
        client.lint(context, DECISIONS)
    encodings = [request.headers.get("Content-Encoding") for request in recorder.requests]
    assert encodings == ["gzip", None]
    with OneHot(server.url, api_key="any-key") as client:
        assert client.decide(context, DECISIONS, idempotency_key="sqwishai-5") == zipped


def test_a_full_queue_is_met_again_under_the_same_key():
    with live_server(max_queue=1) as server, ThreadPoolExecutor(3) as threads:
        server.scorer.may_answer.clear()
        with OneHot(server.url, api_key="any-key", max_retries=0) as plain:
            running = threads.submit(plain.decide, CONTEXT, DECISIONS)
            assert server.scorer.started.wait(10)
            waiting = threads.submit(plain.decide, CONTEXT, DECISIONS)
            wait_until(lambda: server.n_waiting)
            with pytest.raises(APIError) as caught:
                plain.decide(CONTEXT, DECISIONS)
            assert caught.value.code == "engine_unavailable"
            assert caught.value.retryable
            assert caught.value.idempotency_status is None
            assert caught.value.retry_after > 0
            recorder = Recorder()
            with (
                recorder.client() as http,
                OneHot(server.url, api_key="any-key", http_client=http) as patient,
            ):
                third = threads.submit(patient.decide, CONTEXT, DECISIONS)
                assert recorder.answered.wait(10)
                server.scorer.may_answer.set()
                answers = [future.result(timeout=60) for future in (running, waiting, third)]
        assert len({answer["id"] for answer in answers}) == 3
        assert recorder.statuses[0] == 503
        assert recorder.statuses[-1] == 200
        keys = {request.headers["Idempotency-Key"] for request in recorder.requests}
        bodies = {request.content for request in recorder.requests}
        assert len(keys) == len(bodies) == 1


def refusal(call, *args: object, **options: object) -> APIError:
    with pytest.raises(APIError) as caught:
        call(*args, **options)
    return caught.value


def test_keys_and_scopes(accounts):
    url = accounts.server.url
    with OneHot(url, api_key="steelyard_sk_wrong") as client:
        error = refusal(client.decide, CONTEXT, DECISIONS)
        assert (error.status, error.code) == (401, "invalid_api_key")
        assert client.lint(CONTEXT, DECISIONS)["warnings"] is not None  # a wrong key is ignored
    with OneHot(url, api_key=accounts.key("read")) as client:
        assert client.account.get()["accounts_enabled"] is True
        error = refusal(client.decide, CONTEXT, DECISIONS)
        assert (error.status, error.code) == (403, "key_scope")
    with OneHot(url, api_key=accounts.key("inference")) as client:
        assert client.models.list()
        assert refusal(client.account.get).code == "key_scope"


def test_a_decision_has_its_cost(accounts):
    with OneHot(accounts.server.url, api_key=accounts.key()) as client:
        before = Decimal(client.account.get()["wallet"]["available_usd"])
        accounts.add_credit("1.5")
        estimate = client.estimate(CONTEXT, DECISIONS)
        answer = client.decide(CONTEXT, DECISIONS, idempotency_key="paid-1")
        assert client.decide(CONTEXT, DECISIONS, idempotency_key="paid-1") == answer
        cost = Decimal(answer["charge"]["amount_usd"])
        assert cost == Decimal(estimate["maximum_charge_usd"])
        assert cost == answer["usage"]["input_tokens"] * Decimal("0.000001")
        wallet = client.account.get()["wallet"]
        assert Decimal(wallet["available_usd"]) == before + Decimal("1.5") - cost
        assert Decimal(wallet["reserved_usd"]) == 0
        prefixes = [key["prefix"] for key in client.account.keys.list(limit=200)["data"]]
        assert all(prefix.startswith("steelyard_sk_") for prefix in prefixes)


def test_without_credit_nothing_runs():
    with live_server(accounts="on", prices="hashing=1000") as server:
        made = server.services.accounts
        account = made.create_account("poor").id
        with OneHot(server.url, api_key=made.create_key(account=account).secret) as client:
            error = refusal(client.decide, CONTEXT, DECISIONS, idempotency_key="poor-1")
            assert (error.status, error.code) == (402, "insufficient_credit")
            assert server.scorer.n_requests == 0
            made.add_credit(account, from_usd("1"))
            assert client.decide(CONTEXT, DECISIONS, idempotency_key="poor-1")["charge"]


def test_asynchronous_client(server: LiveServer):
    async def run() -> tuple[dict, list, dict]:
        async with AsyncOneHot(server.url, api_key="any-key") as client:
            return await asyncio.gather(
                client.decide(CONTEXT, DECISIONS),
                client.models.list(),
                client.systemone(CONTEXT, QUESTIONS, model="jev-latest"),
            )

    answer, models, systemone = asyncio.run(run())
    assert answer["model"] == models[0]["id"] == systemone["model"]
