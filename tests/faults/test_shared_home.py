"""Two servers on one home: one state, and each key runs once at either."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from faults.audit import audit
from faults.processes import MODEL, open_account, serve_process
from support.api.error_shape import assert_canonical_error
from support.servers.live_server import LiveServer, live_server
from support.servers.serving import REQUEST

N_KEYS = 10


@pytest.mark.slow
def test_both_processes_run_each_key_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    account, secret = open_account(home)
    priced = {"STEELYARD_ACCOUNTS": "on", "STEELYARD_PRICES": f"{MODEL}=7"}
    with serve_process(home, **priced) as one, serve_process(home, **priced) as other:
        one.start()
        other.start()
        together = threading.Barrier(2)

        def ask_all(url: str) -> list[bytes]:
            headers = {"Authorization": f"Bearer {secret}"}
            with httpx.Client(base_url=url, headers=headers, timeout=60) as http:
                return [_answer(http, f"k{number}", together.wait) for number in range(N_KEYS)]

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(ask_all, (one.url, other.url))
        assert first == second
        assert len(set(first)) == N_KEYS
        one.stop()
        # The one that is left answers for what the other did.
        with httpx.Client(
            base_url=other.url, headers={"Authorization": f"Bearer {secret}"}, timeout=60
        ) as http:
            assert [_answer(http, f"k{number}") for number in range(N_KEYS)] == first
        other.stop()
    books = audit(one.state)
    ends = [row["state"] for row in books.operations.values() if row["state"] != "credit"]
    assert ends == ["succeeded"] * N_KEYS
    assert {row["account_id"] for row in books.operations.values()} == {account}


def _answer(http: httpx.Client, key: str, ready: Callable[[], object] = lambda: None) -> bytes:
    """Ask as a client does: again while the key's request is said to be in progress."""
    ready()
    for _ in range(600):
        response = http.post("/v1/decide", json=REQUEST, headers={"Idempotency-Key": key})
        if response.status_code == 200:
            return response.content
        error = assert_canonical_error(response, 409, "request_in_progress", retryable=True)
        assert response.headers["Idempotency-Status"] == "pending", error
        assert float(response.headers["Retry-After"]) > 0
        threading.Event().wait(0.05)
    raise AssertionError(response.text)


def test_a_key_that_runs_in_one_is_in_progress_in_the_other(tmp_path: Path) -> None:
    with live_server(home=tmp_path) as one, live_server(home=tmp_path) as other:

        def ask(server: LiveServer, context: str = "c") -> httpx.Response:
            return httpx.post(
                f"{server.url}/v1/decide",
                json={**REQUEST, "context": context},
                headers={"Idempotency-Key": "k"},
                timeout=60,
            )

        one.scorer.may_answer.clear()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(ask, one)
            assert one.scorer.started.wait(30)
            pending = ask(other)
            assert_canonical_error(pending, 409, "request_in_progress", retryable=True)
            assert pending.headers["Idempotency-Status"] == "pending"
            assert float(pending.headers["Retry-After"]) > 0
            assert_canonical_error(ask(other, "another"), 409, "idempotency_conflict")
            one.scorer.may_answer.set()
            answer = running.result(60)
        assert answer.status_code == 200
        assert pending.headers["X-Operation-ID"] == answer.headers["X-Operation-ID"]
        again = ask(other)
        assert again.content == answer.content
        assert again.headers["Idempotency-Replayed"] == "true"
        assert other.scorer.n_requests == 0
        stored = {"decision_id": answer.json()["id"], "outcomes": {"d": "yes"}}
        assert httpx.post(f"{other.url}/v1/feedback", json=stored).status_code == 200
