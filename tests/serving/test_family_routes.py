"""Calls to families and numbers over HTTP, through a model that was really fine-tuned."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from steelyard.app.job_runtime import open_worker
from steelyard.caller import LOCAL_ACCOUNT, Caller, SignedIn
from steelyard.errors import EngineUnavailableError
from steelyard.families.service import FamilyService
from steelyard.families.tuned import TunedModels
from steelyard.serving.service import DecisionService
from support.api.error_shape import assert_canonical_error
from support.models.evaluated import settings_of
from support.servers.live_server import LiveServer, live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

GIVEN = {"jobs": "off", "dataset_min_rows": 1, "base_models": "second=hashing"}
ROUTE = {
    "id": "route",
    "question": "Who should own this?",
    "outcomes": {"billing": "Money already taken", "shipping": "Parcels on their way"},
}
TEXTS = {"billing": "Invoice {} was paid twice.", "shipping": "Parcel {} never arrived here."}


def rows(start: int, end: int) -> list[dict[str, Any]]:
    labels = ["billing", "shipping"]
    return [
        {
            "context": TEXTS[labels[number % 2]].format(number),
            "decisions": [ROUTE],
            "targets": {"route": labels[number % 2]},
        }
        for number in range(start, end)
    ]


def ask(client: httpx.Client, **fields: Any) -> httpx.Response:
    headers = fields.pop("headers", None)
    request = {"context": "Invoice 9 was paid twice.", "decisions": [ROUTE], "model": "router"}
    return client.post("/v1/decide", json={**request, **fields}, headers=headers)


def wait_for(look: Callable[[], Any]) -> Any:
    """Look until there is something."""
    waiting = threading.Event()
    for _ in range(1200):
        found = look()
        if found:
            return found
        waiting.wait(0.05)
    raise AssertionError("It does not come.")


def start_family(client: httpx.Client, name: str, dataset_id: str) -> dict[str, Any]:
    body = {"family": name, "dataset_id": dataset_id, "method": "sft", "hyperparameters": {}}
    answer = client.post("/v1/families", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def make_dataset(client: httpx.Client) -> str:
    sides = {"name": "tickets", "training": rows(0, 80), "evaluation": rows(1000, 1060)}
    return client.post("/v1/datasets", json=sides).json()["id"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which ``router`` was fine-tuned, and has answered; its server is gone."""
    home = tmp_path_factory.mktemp("home")
    with (
        live_server(home=home, **GIVEN) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        job_id = start_family(client, "router", make_dataset(client))["id"]
        assert_canonical_error(ask(client), 409, "family_empty")
        with open_worker(settings_of(home, base_models="second=hashing")):

            def ended() -> dict[str, Any] | None:
                job = client.get(f"/v1/fine-tuning/jobs/{job_id}").json()
                return None if job["status"] in {"queued", "running"} else job

            job = wait_for(ended)
        assert (job["status"], job["outcome"]) == ("succeeded", "joined"), job
        wait_for(lambda: client.get("/v1/families/router").json()["served"])
        assert ask(client).json()["version"] == "router@1"
    return home


@pytest.fixture(scope="module")
def running_server(home: Path) -> Iterator[LiveServer]:
    with live_server(home=home, **GIVEN) as server:
        yield server


@pytest.fixture(scope="module")
def session_client(running_server: LiveServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=running_server.url, timeout=30) as client:
        yield client


@pytest.fixture
def engines(server: LiveServer) -> Iterator[TunedModels]:
    """The loader of tuned models in the server; nothing is left of a test's."""
    engines = server.services.get(DecisionService)._tuned._models
    yield engines
    forget(engines)


@pytest.fixture
def adapter(client: httpx.Client) -> str:
    return client.get("/v1/models/router@1").json()["lora"]


def forget(engines: TunedModels) -> None:
    with engines._lock:
        for slot in list(engines._slots.values()):
            engines._let_go(slot)


def switch(client: httpx.Client, path: str, *, on: bool) -> None:
    answer = client.post(f"{path}/switch", json={"on": on})
    assert answer.status_code == 200, answer.text


@pytest.fixture
def uses(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names whose use is noted."""
    noted: list[str] = []
    monkeypatch.setattr(
        server.services.get(FamilyService)._lineages,
        "note_use",
        lambda account_id, name: noted.append(name),
    )
    return noted


class Blocked:
    """Artifacts that cannot be fetched until released, or ever."""

    def __init__(self, engines: TunedModels, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_load = threading.Event()
        self.failure: Exception | None = None
        self._fetch = engines._artifacts.fetch
        monkeypatch.setattr(engines._artifacts, "fetch", self.fetch)
        forget(engines)

    def fetch(self, sha256: str) -> Path:
        assert self.may_load.wait(timeout=60)
        if self.failure is not None:
            raise self.failure
        return self._fetch(sha256)


@pytest.fixture
def cold(
    server: LiveServer, engines: TunedModels, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Blocked]:
    """No model is loaded, and none can be; calls wait for a moment."""
    monkeypatch.setattr(server.services.get(DecisionService)._tuned, "warm_wait_s", 0.05)
    blocked = Blocked(engines, monkeypatch)
    yield blocked
    blocked.may_load.set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [{"question": "Which team owns this?"}, {"outcomes": ["billing", "shipping", "sales"]}],
    ids=["question", "outcomes"],
)
def test_an_untrained_wording_is_said(client: httpx.Client, other: dict[str, Any]) -> None:
    """A family has nothing to say of a decision that is worded otherwise: its base answers."""
    assert "warnings" not in ask(client).json()
    reworded = {**ROUTE, **other, "id": "reworded"}
    [warning] = ask(client, decisions=[ROUTE, reworded]).json()["warnings"]
    assert warning["code"] == "untrained_wording"
    assert "did not train on reworded as worded here" in warning["message"]


def test_a_restarted_server_serves_the_family_again(client):
    answer = ask(client).json()
    assert (answer["model"], answer["version"]) == ("router", "router@1")
    assert answer["fallback"] is None
    result = answer["decisions"]["route"]
    assert result["top"] == "billing"
    assert list(result["probabilities"]) == ["billing", "shipping"]
    shipping = ask(client, context="Parcel 8 never arrived here.").json()
    assert shipping["decisions"]["route"]["top"] == "shipping"
    assert answer["usage"]["tokenizer"] == ask(client, model=None).json()["usage"]["tokenizer"]


def test_a_decision_without_a_head_is_the_base_models(client):
    other = [{"id": "refund", "kind": "binary", "question": "Does the writer want money back?"}]
    tuned = ask(client, decisions=other).json()
    base = ask(client, decisions=other, model="hashing").json()
    assert tuned["decisions"] == base["decisions"]
    assert tuned["version"] == "router@1"
    assert "version" not in base


def test_a_number_answers_only_while_its_own_switch_is_on(client):
    assert_canonical_error(ask(client, model="router@1"), 409, "model_off")
    switch(client, "/v1/models/router@1", on=True)
    answer = ask(client, model="router@1").json()
    assert answer["model"] == "router@1"
    assert "version" not in answer
    assert answer["decisions"] == ask(client).json()["decisions"]
    switch(client, "/v1/models/router@1", on=False)
    assert_canonical_error(ask(client, model="router@1"), 409, "model_off")
    assert ask(client).status_code == 200, "the family serves it all the same"


@pytest.mark.parametrize("name", ["nobody", "router@2", "router@", "No Body", "ft-x", "@"])
def test_an_unknown_name_is_not_found(client, name):
    assert_canonical_error(ask(client, model=name), 404, "not_found")


def test_a_family_that_is_off_is_refused_without_a_fallback(client):
    key = {"Idempotency-Key": "before-it-went-off"}
    answered = ask(client, headers=key)
    switch(client, "/v1/families/router", on=False)
    try:
        for path in ("/v1/decide", "/v1/decide/estimate"):
            request = {"context": "x", "decisions": [ROUTE], "model": "router"}
            assert_canonical_error(client.post(path, json=request), 409, "family_off")
        again = ask(client, headers=key)
        assert again.content == answered.content, "what was answered is not said again"
        other = ask(client, context="Other.", headers=key)
        assert_canonical_error(other, 409, "idempotency_conflict")
        refused = ask(client, headers={"Idempotency-Key": "while-it-is-off"})
        assert_canonical_error(refused, 409, "family_off")
    finally:
        switch(client, "/v1/families/router", on=True)
    assert ask(client, headers={"Idempotency-Key": "while-it-is-off"}).status_code == 200


def test_the_playground_has_base_models_alone(client):
    request = {"context": "x", "decisions": [ROUTE], "model": "router"}
    refused = client.post("/v1/playground/decide", json=request)
    assert_canonical_error(refused, 422, "invalid_request")


def test_an_estimate_names_who_may_answer(client):
    request = {"context": "x", "decisions": [ROUTE], "model": "router"}
    estimate = client.post("/v1/decide/estimate", json=request).json()
    assert [one["id"] for one in estimate["models"]] == ["router", "hashing", "second"]
    listed = {**request, "fallback": ["second", "router@1", "nobody"]}
    estimate = client.post("/v1/decide/estimate", json=listed).json()
    assert [one["id"] for one in estimate["models"]] == ["router", "second"]


def test_the_other_dialects_call_families_too(client):
    questions = {
        "route": {
            "type": "choice",
            "instructions": ROUTE["question"],
            "criteria": ROUTE["outcomes"],
        }
    }
    request = {"model": "router", "state": "Invoice 9 was paid twice.", "questions": questions}
    answer = client.post("/v1/systemone", json=request)
    assert answer.json()["model"] == "router", answer.text
    assert client.post("/v1/systemone/estimate", json=request).json()["models"][0]["id"] == "router"
    choices = [{"value": name, "description": text} for name, text in ROUTE["outcomes"].items()]
    question = {"type": "choice", "instructions": ROUTE["question"], "choices": choices}
    request = {"model": "router", "input": "Invoice 9 was paid twice.", "questions": [question]}
    answer = client.post("/v1/decisions", json=request)
    assert answer.json()["model"] == "router", answer.text


def test_production_calls_alone_are_uses(client, uses, server, monkeypatch):
    request = {"context": "x", "decisions": [ROUTE], "model": "router"}
    client.post("/v1/decide/estimate", json=request)
    client.post("/v1/playground/decide", json=request)
    client.get("/v1/models/router/ready")
    client.get("/v1/families/router")
    ask(client, model="hashing")
    ask(client, model="router@1")
    ask(client, decisions=[])
    session = SignedIn("ses_1", "usr_1", "", "owner", 0.0, is_confirmed=True, is_operator=False)

    async def sign_in(*_: object) -> Caller:
        return Caller(LOCAL_ACCOUNT, None, "full", "127.0.0.1", session=session)

    with monkeypatch.context() as patch:
        patch.setattr(server.services.accounts, "authenticate", sign_in)
        assert ask(client).json()["version"] == "router@1", "the console asks"
    assert uses == []
    ask(client)
    assert uses == ["router"]
    key = {"Idempotency-Key": "used-once"}
    ask(client, headers=key)
    ask(client, headers=key)
    assert uses == ["router"] * 2, "a replay is no use"


def test_a_call_moves_the_idle_clock(client):
    def used_at() -> float:
        return client.get("/v1/families/router").json()["used_at"]

    before = used_at()
    ask(client)
    wait_for(lambda: used_at() > before)


def test_a_loading_model_is_reported_and_loading_goes_on(client, cold):
    key = {"Idempotency-Key": "while-it-loads"}
    refused = ask(client, fallback="none", headers=key)
    assert_canonical_error(refused, 503, "model_warming", retryable=True)
    assert refused.headers["retry-after"] == "2"
    assert "idempotency-status" not in refused.headers, "nothing ran, so the key is free"
    ready = client.get("/v1/models/router/ready").json()
    assert ready == {"model": "router", "ready": False, "reason": "model_not_ready"}
    cold.may_load.set()
    wait_for(lambda: client.get("/v1/models/router/ready").json()["ready"])
    answered = ask(client, fallback="none", headers=key)
    assert answered.json()["version"] == "router@1"


def test_a_base_model_stands_in_while_it_loads(client, cold, uses):
    answer = ask(client).json()
    assert answer["fallback"] == {"from": "router", "to": "hashing", "reason": "model_warming"}
    assert answer["model"] == "hashing"
    assert "version" not in answer
    assert uses == ["router"], "it was called for all that"
    listed = ask(client, fallback=["router@1", "nobody", "router@7", "second"]).json()
    assert listed["fallback"]["to"] == "second"


def test_a_list_stands_in_for_a_family_that_is_off(client):
    for fallback in ("auto", "none", ["nobody"]):
        refused = ask(client, model="router@1", fallback=fallback)
        assert_canonical_error(refused, 409, "model_off")
    listed = {"model": "router@1", "fallback": ["router@1", "nobody", "router"]}
    report = {"from": "router@1", "to": "router", "reason": "model_off"}
    for headers in ({}, {"Idempotency-Key": "off"}):
        answer = ask(client, **listed, headers=headers).json()
        assert (answer["model"], answer["fallback"]) == ("router", report)
    request = {"context": "x", "decisions": [ROUTE], **listed}
    estimate = client.post("/v1/decide/estimate", json=request).json()
    assert [one["id"] for one in estimate["models"]] == ["router"]
    switch(client, "/v1/families/router", on=False)
    answer = ask(client, fallback=["second"]).json()
    assert answer["fallback"] == {"from": "router", "to": "second", "reason": "family_off"}
    switch(client, "/v1/families/router", on=True)


def test_families_and_numbers_may_stand_in(client, server, uses):
    server.scorers["second"].failure = RuntimeError("the engine is made to fail")
    answer = ask(client, model="second", fallback=["router@1", "router"]).json()
    assert answer["fallback"]["to"] == "router", "the number's own switch is off"
    assert (answer["model"], answer["version"]) == ("router", "router@1")
    switch(client, "/v1/models/router@1", on=True)
    answer = ask(client, model="second", fallback=["router@1", "router"]).json()
    switch(client, "/v1/models/router@1", on=False)
    assert answer["fallback"]["to"] == answer["model"] == "router@1"
    assert uses == ["router", "router@1"]
    server.scorers["second"].reset()
    assert ask(client, model="second", fallback="none").status_code == 200


def test_an_engine_that_fails_is_passed_over_for_a_while(client, engines, adapter, monkeypatch):
    assert ask(client).json()["fallback"] is None

    def fail(_: object) -> None:
        raise RuntimeError("the engine is made to fail")

    monkeypatch.setattr(engines.loaded(adapter).queue._scorer, "score", fail)
    refused = ask(client, fallback="none")
    assert_canonical_error(refused, 503, "engine_unavailable", retryable=True)
    for fallback in ("auto", ["second"]):
        answer = ask(client, fallback=fallback).json()
        assert answer["fallback"]["reason"] == "recently_unavailable"
    assert answer["model"] == "second"


def test_a_model_that_cannot_be_loaded_is_refused_without_a_fallback(
    client, cold, engines, adapter
):
    cold.failure = EngineUnavailableError("A file was altered.")
    cold.may_load.set()
    # The call that finds out, and those after it.
    wait_for(lambda: ask(client, fallback="none").json()["error"]["code"] == "model_unavailable")
    assert_canonical_error(ask(client), 409, "model_unavailable")
    assert_canonical_error(ask(client, fallback=["second"]), 409, "model_unavailable")
    assert engines.states() == {adapter: "failed"}
    answer = ask(client, model="hashing", fallback=["router"])
    assert answer.status_code == 200


def test_stored_decisions_say_the_version(client, server):
    answer = ask(client, store=True).json()
    stored = server.services.state.read_now(
        lambda connection: connection.exec_driver_sql(
            "SELECT model, version FROM decisions WHERE id = ?", (answer["id"],)
        ).one()
    )
    assert tuple(stored) == ("router", "router@1")


def test_evaluations_by_name(client, home, uses, adapter, server):
    sent = client.post("/v1/datasets", json={"name": "more", "evaluation": rows(2000, 2040)})
    dataset_id = sent.json()["id"]

    def evaluate(*models: str) -> httpx.Response:
        body = {"dataset_id": dataset_id, "models": list(models)}
        return client.post("/v1/evaluations", json=body)

    assert_canonical_error(evaluate("router@1"), 409, "model_off")
    assert_canonical_error(evaluate("nobody"), 404, "not_found")
    submitted = evaluate("router", "hashing").json()
    by_label = {one["model_label"]: one for one in submitted["data"]}
    tuned = by_label["router@1"]
    model = client.get("/v1/models/router@1").json()
    assert tuned["model_id"] == adapter
    assert tuned["model_sha256"] == model["evaluation_key"]
    assert (tuned["model_name"], tuned["version"]) == ("router", 1)
    assert (tuned["training_job_id"], tuned["named"]) == (model["job_id"], "router")
    assert by_label["hashing"]["model_name"] is None
    assert "named" not in by_label["hashing"]
    assert (submitted["queued"], uses) == (2, ["router"])
    before = client.get("/v1/families/router").json()["used_at"]
    with open_worker(settings_of(home, base_models="second=hashing")):

        def succeeded() -> dict[str, Any] | None:
            one = client.get(f"/v1/evaluations/{tuned['id']}").json()
            assert one["status"] not in {"failed", "cancelled"}, json.dumps(one["error"])
            return one if one["status"] == "succeeded" else None

        assert wait_for(succeeded)["metrics"]["accuracy"] > 0.9
        assert client.get("/v1/families/router").json()["used_at"] > before
    # One that is reused was named all the same, such as a fine-tune's own, which names none.
    server.services.state.write_now(
        lambda connection: connection.exec_driver_sql("UPDATE evaluations SET named = NULL")
    )
    again = evaluate("router").json()
    assert (again["reused"], again["data"][0]["named"]) == (1, "router")
    assert uses == ["router", "router"]


@pytest.mark.parametrize(
    ("code", "row"),
    [
        ("task_mismatch", {"decisions": [{**ROUTE, "question": "Which team?"}]}),
        (
            "supervision_mismatch",
            {"targets": None, "rewards": {"route": {"billing": 1, "shipping": 0}}},
        ),
        (None, {"decisions": [{**ROUTE, "id": "team"}], "targets": {"team": "billing"}}),
    ],
)
def test_evaluations_ask_what_a_model_was_trained_on(client, code, row):
    def submit(model: str) -> httpx.Response:
        return client.post("/v1/evaluations", json={"dataset_id": dataset_id, "models": [model]})

    changed = [
        {name: value for name, value in {**one, **row}.items() if value is not None}
        for one in rows(2000, 2002)
    ]
    answer = client.post("/v1/datasets", json={"name": "other", "evaluation": changed})
    dataset_id = answer.json()["id"]
    assert submit("hashing").status_code == 200
    if code is None:
        (evaluation,) = submit("router").json()["data"]  # a decision is known by its wording
        client.post(f"/v1/evaluations/{evaluation['id']}/cancel")
    else:
        error = assert_canonical_error(submit("router"), 422, code)
        assert error["details"][0]["path"] == ["body", "models"]


def test_rows_measured_by_the_fine_tune_are_not_scored_again(client):
    family = client.get("/v1/families/router").json()
    body = {"dataset_id": family["dataset_id"], "models": ["router"]}
    submitted = client.post("/v1/evaluations", json=body).json()
    assert (submitted["queued"], submitted["reused"]) == (0, 1)
    (evaluation,) = submitted["data"]
    assert evaluation["training_job_id"] == family["jobs"][-1]["id"]
    assert evaluation["status"] == "succeeded"
    assert "latency_ms" in evaluation["metrics"]


def test_a_family_that_was_deleted_is_gone(client):
    """The last test: nothing answers to the name after it."""
    switch(client, "/v1/families/router", on=False)
    assert client.request("DELETE", "/v1/families/router", json={}).status_code == 200
    assert_canonical_error(ask(client), 410, "family_deleted")
    assert_canonical_error(ask(client, model="router@1"), 410, "model_deleted")
    listed = ask(client, model="hashing", fallback=["router", "router@1"])
    assert listed.json()["fallback"] is None
