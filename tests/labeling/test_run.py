"""Labeling from the queue to its end: teachers that fail, money, stopping, and kill -9."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import httpx
import pytest
from sqlalchemy import select

from jobs.workers import kill, start_job_worker
from steelyard import patience
from steelyard.app.foundation import open_frames
from steelyard.app.job_runtime import open_worker
from steelyard.caller import Caller
from steelyard.errors import LabelingUnavailableError, ModelChangedError
from steelyard.evaluations.models import EvaluatedModels
from steelyard.labeling.files import answered_pairs
from steelyard.labeling.run import LabelingRuns
from steelyard.labeling.store import live_files, parts_of, sweep_files
from steelyard.ledger.money import from_usd
from steelyard.operations.tables import operations
from steelyard.serving.connected import breaker, remote
from support.models.evaluated import claim
from support.models.teaching import SHARED, is_even, queries, taught_server
from support.servers.calling import answer_of
from support.waiting import slowed, wait_until

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(autouse=True)
def short_rests(monkeypatch):
    """A teacher that fails is asked again soon, and left alone for a moment."""
    monkeypatch.setattr(breaker, "REST_S", 0.05)
    monkeypatch.setattr(remote, "_LAST_WAIT_S", 0.02)


@contextmanager
def taught(home, teachers=("even",), **given):
    """A server with teachers, a client of it, and the teachers."""
    models = dict.fromkeys(teachers, is_even)
    with (
        taught_server(home, models, **given) as (server, found),
        httpx.Client(base_url=server.url, timeout=30) as http,
    ):
        yield server.services, http, found


def start(http, n=6, *, headers=None, **given):
    """A job on a source of its own."""
    headers = headers or {}
    source = http.post(
        "/v1/labeling/sources?name=queries", content=queries(n), headers={**NDJSON, **headers}
    ).json()
    body = {"source_id": source["id"], "decisions": SHARED, **given}
    return http.post("/v1/labeling/jobs", json=body, headers=headers)


def runs_of(services, **given):
    """The labeling runs in this process; a teacher that failed is asked again at once."""
    return LabelingRuns(
        services.state,
        open_frames(services.settings, "labeling"),
        EvaluatedModels(services.models),
        **{"pauses_s": (0.01,), **given},
    )


def run(services, job, **given):
    """Run a job in this process."""
    running = claim(services.state, runs_of(services, **given), job["id"])
    while running.advance():
        pass


def get(http, job, call="", **given):
    return http.get(f"/v1/labeling/jobs/{job['id']}{call}", **given).json()


def asked_about(teacher):
    """The questions to a teacher, as often as they were sent."""
    return [body["state"] for _, body in teacher.asked]


def test_a_teacher_that_fails_leaves_its_rows_to_the_others(tmp_path):
    with taught(tmp_path, ("even", "away")) as (services, http, teachers):
        teachers["away"].fault = "status 500"
        job = start(http).json()
        run(services, job)
        ended = get(http, job)
        counts = ("completed_rows", "valid_rows", "agreement_rows", "error_rows")
        assert [ended[name] for name in counts] == [6, 6, 0, 6]
        assert ended["status"] == "review_ready"
        assert ended["decisions"][0]["alpha"] is None
        assert ended["teachers"][1]["errors"] == 6
        assert ended["teachers"][0]["with_others"] is None
        rows = get(http, job, "/results")["data"]
        assert (rows[0]["valid"], rows[0]["agreement"]) == (True, False)
        assert rows[0]["targets"] == {"refund": {"yes": 1.0}}
        errors = [row["teachers"][1]["error"] for row in rows]
        assert all("away" in error for error in errors)
        asked = {int(context.split()[1]) for context in asked_about(teachers["away"])}
        assert {place for place in range(6) if "not asked" not in errors[place]} == asked


def test_a_teacher_that_comes_back_is_asked_again(tmp_path):
    with taught(tmp_path) as (services, http, teachers):
        teacher = teachers["even"]
        teacher.fault = "status 500"
        job = start(http, 3).json()
        running = claim(services.state, runs_of(services, pauses_s=(0.5, 1, 1)), job["id"])
        heal = asyncio.to_thread(wait_until, lambda: len(teacher.asked) > 2)

        async def advance():
            healing = asyncio.create_task(heal)
            advancing = asyncio.create_task(asyncio.to_thread(running.advance))
            await healing
            teacher.fault = ""
            await advancing

        asyncio.run(advance())
        assert not running.advance()
        assert get(http, job)["error_rows"] == 0


FAILING = {"bad": range(8), "healthy": range(16, 24), "two rests": (*range(2, 7), *range(19, 24))}


@pytest.mark.parametrize("first", FAILING)
def test_rows_that_a_teacher_fails_on_cost_others_nothing(tmp_path, first):
    """A row's error is its own, and a row that was not sent has none."""
    bad = FAILING[first]
    with taught(tmp_path) as (services, http, teachers):
        teachers["even"].fails = lambda body: int(body["state"].split()[1]) in bad
        job = start(http, 24).json()
        run(services, job)
        rows = get(http, job, "/results?limit=50")["data"]
        assert [row["index"] for row in rows if not row["valid"]] == list(bad)
        assert all("status 500" in rows[place]["error"] for place in bad)
        assert "left alone" not in str(rows)


@pytest.mark.parametrize("fault", ["status 500", "status 429"])
def test_a_dead_teacher_holds_a_job_once(tmp_path, monkeypatch, fault):
    """It is not waited for again in further windows; rows that it was not asked about say so."""
    monkeypatch.setattr(breaker, "REST_S", 1.0)
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    with taught(tmp_path, ("even", "away")) as (services, http, teachers):
        teachers["away"].fault = fault
        job = start(http, 40).json()
        run(services, job, pauses_s=(0, 0, 0), window_rows=8)
        assert get(http, job)["error_rows"] == 40
        rows = get(http, job, "/results?limit=50")["data"]
        sent = {int(context.split()[1]) for context in asked_about(teachers["away"])}
        assert {
            row["index"] for row in rows if "not asked" not in row["teachers"][1]["error"]
        } == sent
        assert len(sent) < 40


def test_without_any_label_it_fails_and_says_why(tmp_path):
    with taught(tmp_path, price_in="1") as (services, http, teachers):
        teachers["even"].fault = "status 500"
        job = start(http, 2).json()
        assert job["charge"] == "reserved"
        runs = runs_of(services)
        running = claim(services.state, runs, job["id"])
        assert running.advance()
        with pytest.raises(LabelingUnavailableError) as failed:
            running.advance()
        runs.fail(running.job, failed.value)
        ended = get(http, job)
        assert ended["error_code"] == "labeling_unavailable"
        assert "even" in ended["error"]
        assert ended["charge"] == "released"


def test_a_context_too_long_for_a_teacher_is_reported_at_its_row(tmp_path, monkeypatch):
    with taught(tmp_path) as (services, http, _):
        long = {"context": "Invoice 1 " + "word " * 70_000}
        content = queries(1) + httpx.Request("POST", "http://x", json=long).content
        source = http.post("/v1/labeling/sources?name=q", content=content, headers=NDJSON).json()
        body = {"source_id": source["id"], "decisions": SHARED}
        job = http.post("/v1/labeling/jobs", json=body).json()
        run(services, job)
        first, second = get(http, job, "/results")["data"]
        assert (first["valid"], second["valid"]) == (True, False)
        assert second["error"].startswith("Row 1 has")
        refused = http.post(f"/v1/labeling/jobs/{job['id']}/finalize", json={"row_indices": [1]})
        assert refused.json()["error"]["details"][0]["path"] == ["body", "row_indices", 0]


def test_a_teacher_that_changed_since_ends_the_job(tmp_path):
    with taught(tmp_path) as (services, http, _):
        job = start(http).json()
        services.models.find("even").evaluation_key = "ab" * 32
        runs = runs_of(services)
        running = claim(services.state, runs, job["id"])
        with pytest.raises(ModelChangedError) as changed:
            running.advance()
        runs.fail(running.job, changed.value)
        assert get(http, job)["error_code"] == "model_changed"


class TestMoney:
    @pytest.fixture
    def paid(self, tmp_path):
        """Services, a client, and an account with its key and 0.1 USD."""
        with taught(tmp_path, price_in="1", accounts="on") as (services, http, _):
            accounts = services.accounts
            account = accounts.create_account("payer")
            key = accounts.create_key(account=account.id)
            accounts.add_credit(account.id, from_usd("0.1"))
            http.headers["Authorization"] = f"Bearer {key.secret}"
            yield services, http, Caller(account.id, None, "full", "test")

    def test_the_price_is_held_then_charged_once_labels_are_ready(self, paid):
        services, http, caller = paid
        job = start(http, 4).json()
        tokens = (
            4
            * answer_of(
                "POST /v1/decide/estimate",
                services,
                {"context": "Invoice 0 was paid twice.", "decisions": SHARED, "model": "even"},
                caller=caller,
            )["input_tokens"]
        )
        price = tokens * 1e-6
        assert float(job["price_usd"]) == pytest.approx(price)
        assert job["charge"] == "reserved"
        assert float(balance(http)["reserved_usd"]) == pytest.approx(price)
        run(services, job)
        assert get(http, job)["charge"] == "charged"
        assert float(balance(http)["reserved_usd"]) == 0
        assert float(balance(http)["available_usd"]) == pytest.approx(0.1 - price)

    def test_a_cancelled_one_costs_nothing(self, paid):
        _, http, _ = paid
        job = start(http).json()
        cancelled = http.post(f"/v1/labeling/jobs/{job['id']}/cancel").json()
        assert cancelled["charge"] == "released"
        assert float(balance(http)["available_usd"]) == 0.1

    def test_one_whose_source_is_deleted_costs_nothing(self, paid):
        _, http, _ = paid
        job = start(http).json()
        http.delete(f"/v1/labeling/sources/{job['source_id']}")
        assert get(http, job)["charge"] == "released"
        assert float(balance(http)["available_usd"]) == 0.1

    def test_a_job_over_the_price_limit_is_refused_and_holds_nothing(self, paid):
        _, http, _ = paid
        refused = start(http, max_price_usd="0.00001")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "price_changed")
        refused = start(http, 2_000, decisions=[{**SHARED[0], "question": "Is it? " * 40}])
        assert (refused.status_code, refused.json()["error"]["code"]) == (
            402,
            "insufficient_credit",
        )
        assert float(balance(http)["available_usd"]) == 0.1
        assert http.get("/v1/labeling/jobs").json()["data"] == []


def balance(http):
    return http.get("/v1/account").json()["wallet"]


def test_cancelling_a_running_one_stops_it_soon(tmp_path):
    with taught(tmp_path) as (services, http, teachers):
        teachers["even"].fault = "hangs"
        job = start(http).json()
        with open_worker(services.settings):
            wait_until(lambda: len(teachers["even"].asked) > 0, 30)
            asked = http.post(f"/v1/labeling/jobs/{job['id']}/cancel").json()
            assert asked["status"] == "cancelling"
            wait_until(lambda: get(http, job)["status"] == "cancelled", 10)
            teachers["even"].may_answer.set()


def test_files_that_nothing_refers_to_are_swept_and_others_stay(tmp_path):
    with taught(tmp_path) as (services, http, _):
        job, gone = start(http).json(), start(http, 3).json()
        run(services, job)
        run(services, gone)
        http.delete(f"/v1/labeling/sources/{gone['source_id']}")
        store = open_frames(services.settings, "labeling")
        before = set(store.contents())
        sweep_files(services.state, store)  # what is younger than a day stays
        assert set(store.contents()) == before
        store.sweep(services.state.read_now(live_files), older_than_s=0)
        assert len(store.contents()) == 2
        assert len(get(http, job, "/results")["data"]) == 6


@pytest.mark.slow
def test_a_killed_worker_is_resumed_and_no_kept_answer_is_asked_for_again(tmp_path):
    n_rows = 120
    with taught(tmp_path, ("even", "odd"), price_in="1") as (services, http, teachers):
        for teacher in teachers.values():
            teacher.answer = slowed(teacher.answer, 0.02)
        job = start(http, n_rows).json()
        worker = start_job_worker(tmp_path)
        try:
            wait_until(lambda: len(kept_pairs(services, job)) > 0, 30)
        finally:
            kill(worker)
        kept = kept_pairs(services, job)
        for teacher in teachers.values():
            teacher.asked.clear()
        assert len(kept) < 2 * n_rows, "the kill came too late"
        with open_worker(services.settings):
            wait_until(lambda: get(http, job)["status"] == "review_ready", 60)
        ended = get(http, job)
        assert (ended["completed_rows"], ended["error_rows"]) == (n_rows, 0)
        assert ended["charge"] == "charged"
        for place, teacher in enumerate(teachers.values()):
            rows = [int(text.split()[1]) for text in asked_about(teacher)]
            assert sorted(rows) == [row for row in range(n_rows) if (row, place) not in kept]
        held = services.state.read_now(_operations)
        assert [(one.state, one.amount_nano) for one in held] == [
            ("succeeded", held[0].reserved_nano)
        ]


def kept_pairs(services, job):
    parts = services.state.read_now(lambda connection: parts_of(connection, job["id"]))
    return answered_pairs(open_frames(services.settings, "labeling"), parts)


def _operations(connection):
    return connection.execute(select(operations)).all()
