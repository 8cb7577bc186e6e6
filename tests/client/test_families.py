"""``client.families`` and ``client.jobs``: their requests, and how they wait."""

from __future__ import annotations

from types import SimpleNamespace

import httpx
import msgspec
import pytest
from msgspec import UNSET

from steelyard.client import AsyncClient, Client, NoAnswerInTimeError, ServerUnreachableError
from steelyard.client.waiting import LONGEST_SILENCE_S, Looking
from steelyard.errors import (
    EngineUnavailableError,
    FamilyChangedError,
    FamilyOffError,
    InvalidRequestError,
    ModelDeletedError,
    ModelDiscardedError,
    NotFoundError,
)
from steelyard.families.fine_tune_wire import Job
from support.families.family_data import deleted, family, job, model
from support.servers.scripted_server import ScriptedServer, answer, refusal

CLIENTS = pytest.mark.parametrize("client_class", [Client, AsyncClient])
ESTIMATE = {
    "currency": "USD",
    "price_usd": "0",
    "minimum_applied": False,
    "trained_tokens": 10,
    "steps": 20,
    "seed": 1,
    "passes": 2.0,
    "train_rows": 40,
    "rows": {"new": 40, "earlier": 0, "evaluation": 10},
    "dataset_version": 1,
}
MODEL = {
    "id": "router@3",
    "name": "router@3",
    "status": "ready",
    "description": "",
    "evaluation_key": "0" * 64,
    "decision_price_nano": "0",
    "family": "hashing",
    "created_at": 1.0,
    "max_input_tokens": 1,
    "max_prompt_tokens": 1,
    "max_questions": 1,
    "calibration": "",
    "engine": "",
    "release_date": "2026-01-01",
}

#: What is called, what answers, and the method, path and body that are sent.
CALLS = [
    (
        lambda c: c.families.create("router", "ds_1", start_from="ant@2", max_price_usd="1"),
        job(),
        ("POST", "/v1/families"),
        {
            "family": "router",
            "dataset_id": "ds_1",
            "hyperparameters": {},
            "from": "ant@2",
            "max_price_usd": "1",
        },
    ),
    (
        lambda c: c.families.estimate("router", "ds_1", method="sft", hyperparameters={"seed": 1}),
        ESTIMATE,
        ("POST", "/v1/families/estimate"),
        {
            "family": "router",
            "dataset_id": "ds_1",
            "method": "sft",
            "hyperparameters": {"seed": 1},
        },
    ),
    (lambda c: c.families.list(), {"data": [family()]}, ("GET", "/v1/families"), None),
    (lambda c: c.families.get("router"), family(), ("GET", "/v1/families/router"), None),
    (
        lambda c: c.families.switch("router", True, switch_off=("ant@1",), served=None),
        family(),
        ("POST", "/v1/families/router/switch"),
        {"on": True, "switch_off": ["ant@1"], "served": None},
    ),
    (
        lambda c: c.families.keep_warm("router", max_price_usd="0.1", served="ft-ftj_2"),
        family(),
        ("POST", "/v1/families/router/keep-warm"),
        {"enabled": True, "max_price_usd": "0.1", "served": "ft-ftj_2"},
    ),
    (
        lambda c: c.families.bound("router", 0.02, served="ft-ftj_2"),
        family(),
        ("POST", "/v1/families/router/bound"),
        {"error": 0.02, "confidence": 0.95, "served": "ft-ftj_2"},
    ),
    (
        lambda c: c.families.abstain_on_novel("router", 0.01, served="ft-ftj_2"),
        family(),
        ("POST", "/v1/families/router/novelty"),
        {"false_alarms": 0.01, "served": "ft-ftj_2"},
    ),
    (
        lambda c: c.families.answer_novel("router"),
        family(),
        ("DELETE", "/v1/families/router/novelty"),
        None,
    ),
    (
        lambda c: c.families.remove_bound("router"),
        family(),
        ("DELETE", "/v1/families/router/bound"),
        None,
    ),
    (
        lambda c: c.families.roll_back("router", "router@1", ["router@2"]),
        family(),
        ("POST", "/v1/families/router/rollback"),
        {"to": "router@1", "discard": ["router@2"]},
    ),
    (
        lambda c: c.families.continue_("router", latest=None, dataset_version=3, base="double"),
        job(),
        ("POST", "/v1/families/router/continue"),
        {"hyperparameters": {}, "latest": None, "dataset_version": 3, "base": "double"},
    ),
    (
        lambda c: c.families.estimate_continue("router", latest=UNSET),
        ESTIMATE,
        ("POST", "/v1/families/router/continue/estimate"),
        {"hyperparameters": {}},
    ),
    (
        lambda c: c.families.estimate_continue("router", base="double"),
        ESTIMATE,
        ("POST", "/v1/families/router/continue/estimate"),
        {"hyperparameters": {}, "base": "double"},
    ),
    (
        lambda c: c.families.delete("router", dataset_id="ds_1", latest="ft-ftj_2"),
        {"id": "router", "object": "family", "deleted": True},
        ("DELETE", "/v1/families/router"),
        {"dataset_id": "ds_1", "latest": "ft-ftj_2"},
    ),
    (
        lambda c: c.models.switch("router@3", False, adapter="ft-ftj_3"),
        MODEL,
        ("POST", "/v1/models/router%403/switch"),
        {"on": False, "adapter": "ft-ftj_3"},
    ),
    (
        lambda c: c.models.keep_warm("router@3", False),
        MODEL,
        ("POST", "/v1/models/router%403/keep-warm"),
        {"enabled": False},
    ),
    (
        lambda c: c.models.delete("router@3", adapter="ft-ftj_3"),
        {"id": "router@3", "deleted": True},
        ("DELETE", "/v1/models/router%403?adapter=ft-ftj_3"),
        None,
    ),
    (lambda c: c.jobs.get("ftj_3"), job(), ("GET", "/v1/fine-tuning/jobs/ftj_3"), None),
    (
        lambda c: c.jobs.events("ftj_3"),
        {"data": []},
        ("GET", "/v1/fine-tuning/jobs/ftj_3/events"),
        None,
    ),
    (
        lambda c: c.jobs.cancel("ftj_3"),
        job(),
        ("POST", "/v1/fine-tuning/jobs/ftj_3/cancel"),
        {},
    ),
]


@CLIENTS
@pytest.mark.parametrize(("use", "told", "asked", "body"), CALLS)
def test_requests_have_the_arguments(client_class, use, told, asked, body):
    server = ScriptedServer(client_class, [answer(told)])
    server.ask(use)
    (request,) = server.requests
    assert (request.method, request.url.raw_path.decode()) == asked
    if body is not None:
        assert server.body() == body
    is_estimate = asked[1].endswith("estimate")
    assert ("idempotency-key" in request.headers) == (request.method != "GET" and not is_estimate)


@CLIENTS
def test_a_text_is_no_list_of_names(client_class):
    server = ScriptedServer(client_class, [answer(family())])
    with pytest.raises(InvalidRequestError) as refused:
        server.ask(lambda client: client.families.roll_back("router", "router@1", "router@2"))
    assert refused.value.details[0]["path"] == ["body", "discard"]
    assert server.requests == []


@CLIENTS
def test_fine_tunes_are_listed_page_by_page(client_class):
    pages = [
        answer({"data": [job(id="ftj_2")], "has_more": True, "next_cursor": "ftj_2"}),
        answer({"data": [job(id="ftj_1")], "has_more": False, "next_cursor": None}),
    ]
    server = ScriptedServer(client_class, pages)
    listing = server.ask(
        lambda client: (
            list(client.jobs.list(status=["queued", "running"], dataset_id="ds_1", page_size=1))
            if client_class is Client
            else client.jobs.list(status=["queued", "running"], dataset_id="ds_1", page_size=1)
        )
    )
    assert [one.id for one in listing] == ["ftj_2", "ftj_1"]
    queries = [request.url.params.multi_items() for request in server.requests]
    common = [("status", "queued"), ("status", "running"), ("dataset_id", "ds_1"), ("limit", "1")]
    assert queries == [common, [*common, ("cursor", "ftj_2")]]


@CLIENTS
def test_records_of_every_page_are_given(client_class):
    record = {
        "context_sha256": "0" * 64,
        "decision_id": "team",
        "probabilities": {"a": 0.6, "b": 0.4},
        "targets": {"a": 1.0},
    }
    page = {"group": "base", "groups": ["adapted", "base"], "total": 3, "limit": 2}
    pages = [
        answer({**page, "data": [record, record], "offset": 0, "has_more": True}),
        answer({**page, "data": [record], "offset": 2, "has_more": False}),
    ]
    server = ScriptedServer(client_class, pages)
    found = server.ask(lambda client: client.jobs.records("ftj_3", group="base"))
    assert len(found) == 3
    assert [request.url.params["offset"] for request in server.requests] == ["0", "2"]
    few = ScriptedServer(
        client_class, [answer({**page, "data": [record], "offset": 0, "has_more": True})]
    )
    assert len(few.ask(lambda client: client.jobs.records("ftj_3", limit=1))) == 1


@CLIENTS
def test_following_a_fine_tune(client_class):
    progress = {"step": 40, "steps": 200, "loss": 0.5, "phase": "heads"}
    looks = [
        answer(job(status="queued", outcome=None)),
        answer(job(status="running", progress=progress, outcome=None)),
        answer(job()),
    ]
    server = ScriptedServer(client_class, looks)
    ended = server.ask(lambda client: client.jobs.wait("ftj_3", poll_s=0.001))
    assert ended.has_joined
    assert len(server.requests) == 3
    running = ScriptedServer(client_class, [answer(job(status="running"))])
    with pytest.raises(NoAnswerInTimeError, match="running"):
        running.ask(lambda client: client.jobs.wait(ended, timeout_s=0))


#: What comes of looks while a server restarts, each tried once.
AWAY = [
    httpx.ConnectError("refused"),
    httpx.Response(502, text="<html>proxy</html>"),
    refusal(EngineUnavailableError("Loading.")),
]


@CLIENTS
def test_a_restart_of_the_server_ends_no_following(client_class, caplog):
    looks = [answer(job(status="running", outcome=None)), *AWAY, answer(job())]
    server = ScriptedServer(client_class, looks, max_retries=0)
    assert server.ask(lambda client: client.jobs.wait("ftj_3", poll_s=0.001)).has_joined
    assert len(server.requests) == 5
    (told,) = [one.getMessage() for one in caplog.records if "looking again" in one.getMessage()]
    assert "No connection" in told
    moving = answer(family(move={"to": "router@3", "waiting_for": "engines", "reason": None}))
    moved = ScriptedServer(
        client_class, [moving, *AWAY, answer(family(served=model(3), move=None))], max_retries=0
    )
    served = moved.ask(lambda client: client.families.wait("router", "router@3", poll_s=0.001))
    assert served.served.ref == "router@3"


@CLIENTS
@pytest.mark.parametrize("timeout_s", [0.5, None])
def test_a_server_that_stays_away_is_reported(client_class, timeout_s, monkeypatch):
    monkeypatch.setattr("steelyard.client.waiting.LONGEST_SILENCE_S", 0.5)
    looks = [answer(job(status="running", outcome=None)), httpx.ConnectError("refused")]
    server = ScriptedServer(client_class, looks, max_retries=0)
    with pytest.raises(ServerUnreachableError):
        server.ask(lambda client: client.jobs.wait("ftj_3", poll_s=0.001, timeout_s=timeout_s))
    assert len(server.requests) > 2


def test_a_look_that_hangs_for_longer_than_silence_is_borne_ends_no_wait(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(
        "steelyard.client.waiting.time", SimpleNamespace(monotonic=lambda: clock[0])
    )
    looking = Looking(None, was_answered=True)

    def hang(seconds):
        with looking:
            clock[0] += seconds
            raise ServerUnreachableError("Gone.")

    hang(2 * LONGEST_SILENCE_S)
    hang(LONGEST_SILENCE_S / 2)
    with pytest.raises(ServerUnreachableError):
        hang(LONGEST_SILENCE_S)
    with looking:
        pass
    hang(2 * LONGEST_SILENCE_S)


@CLIENTS
@pytest.mark.parametrize(
    ("looks", "error"),
    [
        ([httpx.ConnectError("refused")], ServerUnreachableError),
        ([answer(job(status="running")), refusal(NotFoundError("Gone."))], NotFoundError),
    ],
)
def test_following_ends_at_a_permanent_error(client_class, looks, error):
    server = ScriptedServer(client_class, looks, max_retries=0)
    with pytest.raises(error):
        server.ask(lambda client: client.jobs.wait("ftj_3", poll_s=0.001))
    assert len(server.requests) == len(looks)


@CLIENTS
def test_waiting_until_a_family_serves_a_model(client_class):
    looks = [
        answer(family(move={"to": "router@3", "waiting_for": "engines", "reason": None})),
        answer(family(served=model(3), move=None)),
    ]
    server = ScriptedServer(client_class, looks)
    served = server.ask(lambda client: client.families.wait("router", "router@3", poll_s=0.001))
    assert served.served.ref == "router@3"
    made = ScriptedServer(client_class, [answer(family(served=model(3)))])
    by_job = made.ask(lambda client: client.families.wait("router", as_job(job())))
    assert by_job.served.adapter == "ft-ftj_3"


def as_job(fields: dict) -> Job:
    return msgspec.convert(fields, Job)


@CLIENTS
@pytest.mark.parametrize(
    ("fields", "wanted", "error"),
    [
        ({"switched_on": False}, "router@3", FamilyOffError),
        ({}, "router@9", NotFoundError),
        ({}, "router@1", ModelDeletedError),
        (
            {"models": [deleted(1), model(2), model(3, status="discarded", discarded_at=1.0)]},
            "router@3",
            ModelDiscardedError,
        ),
        ({"served": model(3)}, "router@2", FamilyChangedError),
    ],
)
def test_a_wait_in_vain_is_refused_at_once(client_class, fields, wanted, error):
    server = ScriptedServer(client_class, [answer(family(**fields))])
    with pytest.raises(error):
        server.ask(lambda client: client.families.wait("router", wanted))
    assert len(server.requests) == 1


@CLIENTS
def test_a_wait_ends_in_time_with_its_reason(client_class):
    server = ScriptedServer(client_class, [answer(family())])
    with pytest.raises(NoAnswerInTimeError, match="as many models answer as may"):
        server.ask(lambda client: client.families.wait("router", "router@3", timeout_s=0))


@CLIENTS
def test_a_fine_tune_without_a_model_is_not_waited_for(client_class):
    server = ScriptedServer(client_class, [answer(family())])
    failed = as_job(job(output_model=None, outcome="gate_failed", reason="It is no better."))
    with pytest.raises(ValueError, match="It is no better"):
        server.ask(lambda client: client.families.wait("router", failed))
    assert server.requests == []
