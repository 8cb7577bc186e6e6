"""kill -9 of workers in every phase of labeling and prompt tuning: resumed, and charged once."""

from __future__ import annotations

import random

import httpx
import pytest
from sqlalchemy import select

from jobs.workers import kill, start_job_worker
from steelyard.app.job_runtime import open_worker
from steelyard.ledger.money import from_usd
from steelyard.operations.tables import operations
from support.datasets.dataset_rows import to_ndjson
from support.decisions.wordings import rows, tuned_server
from support.models.teaching import SHARED, is_even, queries, taught_server
from support.waiting import let_a_moment_pass, slowed, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

N_KILLS = 20
PHASES = ("measuring_noise", "searching", "testing")


class Slow:
    """Slows models down, so that a kill finds them at work; until stopped."""

    def __init__(self, models, pause_s):
        self.pause_s = pause_s
        for model in models:
            model.answer = slowed(model.answer, lambda: self.pause_s)


def paying(services, http):
    account = services.accounts.create_account("payer")
    key = services.accounts.create_key(account=account.id)
    services.accounts.add_credit(account.id, from_usd("50"))
    http.headers["Authorization"] = f"Bearer {key.secret}"


def charged(services):
    """The charge of each job, by the ledger's operations."""
    with_state = services.state.read_now(
        lambda connection: connection.execute(select(operations)).all()
    )
    assert {one.state for one in with_state} <= {"succeeded", "released", "credit"}
    return [one.amount_nano for one in with_state if one.state == "succeeded"]


def kill_while_it_runs(home, is_there, seed):
    """Start a worker, wait until it is where it is to die, and kill it a random moment later."""
    worker = start_job_worker(home)
    try:
        wait_until(is_there, 60)
        let_a_moment_pass(random.Random(seed), 0, 0.15)
    finally:
        kill(worker)


def test_labeling(tmp_path):
    with (
        taught_server(
            tmp_path, {"even": is_even, "sure": lambda _: 0.9}, price_in="1", accounts="on"
        ) as (server, teachers),
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        paying(server.services, http)
        slow = Slow(teachers.values(), 0.02)
        source = http.post(
            "/v1/labeling/sources?name=q",
            content=queries(5_000),
            headers={"Content-Type": "application/x-ndjson"},
        ).json()
        job = http.post(
            "/v1/labeling/jobs", json={"source_id": source["id"], "decisions": SHARED}
        ).json()

        def get():
            return http.get(f"/v1/labeling/jobs/{job['id']}").json()

        for number in range(N_KILLS):
            before = get()["completed_rows"]
            assert before < 5_000, "it ended before the last kill"
            kill_while_it_runs(
                tmp_path, lambda before=before: get()["completed_rows"] > before, number
            )
        slow.pause_s = 0
        with open_worker(server.services.settings):
            wait_until(lambda: get()["status"] == "review_ready", 120)
        ended = get()
        assert (ended["completed_rows"], ended["valid_rows"], ended["error_rows"]) == (
            5_000,
            5_000,
            0,
        )
        assert ended["charge"] == "charged"
        assert charged(server.services) == [from_usd(job["price_usd"])]
        results = http.get(f"/v1/labeling/jobs/{job['id']}/results?offset=4000&limit=200").json()
        assert all(len(row["teachers"]) == 2 for row in results["data"])


@pytest.mark.parametrize("phase", PHASES)
def test_prompt_tuning(tmp_path, phase):
    with tuned_server(tmp_path, price_in="1", accounts="on") as (services, http, remote):
        paying(services, http)
        files = {
            "training": ("t.jsonl", to_ndjson(rows(60)), "application/x-ndjson"),
            "evaluation": ("e.jsonl", to_ndjson(rows(60, start=60)), "application/x-ndjson"),
        }
        dataset = http.post("/v1/datasets", files=files, data={"name": "tickets"}).json()["id"]
        asked = {"dataset_id": dataset, "model": "far", "effort": "thorough"}
        alone = http.post("/v1/prompt-tuning/jobs", json=asked).json()

        def get(job):
            return http.get(f"/v1/prompt-tuning/jobs/{job['id']}").json()

        with open_worker(services.settings):
            wait_until(lambda: get(alone)["status"] == "succeeded", 120)
        slow = Slow([remote], 0.01)
        n_killed = n_jobs = 0
        while n_killed < N_KILLS:
            job = http.post("/v1/prompt-tuning/jobs", json=asked).json()
            n_jobs += 1

            def is_there(job=job):
                now = get(job)
                if (now["progress"] or {}).get("phase") != phase:
                    return now["status"] == "succeeded"
                slow.pause_s = 0.1
                return True

            for _ in range(2):  # one more without getting further, and it is given up
                slow.pause_s = 0.002
                kill_while_it_runs(tmp_path, is_there, n_killed)
                if get(job)["status"] == "succeeded":
                    break
                n_killed += 1
            slow.pause_s = 0
            with open_worker(services.settings):
                wait_until(lambda job=job: get(job)["status"] in {"succeeded", "failed"}, 60)
            assert get(job)["status"] == "succeeded", get(job)
            ended, first = get(job)["result"], get(alone)["result"]
            assert ended["rounds"] == first["rounds"]
            assert ended["verdict"] == first["verdict"]
        assert charged(services) == [from_usd(alone["price_usd"])] * (n_jobs + 1)
