"""Engines that fail, hang or answer nonsense, as a caller over HTTP meets them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import httpx
import numpy as np
import pytest

from faults.faulty_engines import FAULTS, FIRST, SECOND, FaultyServer, faulty_server
from support.api.error_shape import assert_canonical_error
from support.api.openapi_validation import responses_checked
from support.servers.hosting import Scored, with_logits
from support.waiting import slowed, wait_until


@pytest.fixture(scope="module", autouse=True)
def every_response_is_checked() -> Iterator[None]:
    with responses_checked():
        yield


@pytest.fixture(scope="module")
def shared() -> Iterator[FaultyServer]:
    with faulty_server() as server:
        yield server


@pytest.fixture
def server(shared: FaultyServer) -> FaultyServer:
    for engine in shared.engines.values():
        engine.behave = None
    # An answer ends what is remembered of failures.
    for model in (FIRST, SECOND):
        assert shared.ask(model=model, fallback="none").status_code == 200
    return shared


def fallback_of(response: httpx.Response) -> tuple[str, str, str]:
    assert response.status_code == 200, response.text
    report = response.json()["fallback"]
    return report["from"], report["to"], report["reason"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_once_for_each_key_and_then_is_over(
    server: FaultyServer, fault: str
) -> None:
    engine = server.engines[FIRST]
    before = server.wallet()
    engine.behave = FAULTS[fault]
    key = f"fault-{fault.replace(' ', '-')}"
    told = server.ask(key, fallback="none")
    error = assert_canonical_error(told, 503, "engine_unavailable", retryable=True)
    assert float(told.headers["Retry-After"]) > 0
    assert told.headers["Idempotency-Status"] == "terminal"
    assert server.wallet() == before

    engine.behave = None
    n_calls = engine.n_calls
    again = server.ask(key, fallback="none")
    same = assert_canonical_error(again, 503, "engine_unavailable", retryable=True)
    assert same["message"] == error["message"]
    for name in ("Idempotency-Status", "X-Operation-ID", "Retry-After"):
        assert again.headers[name] == told.headers[name]
    assert engine.n_calls == n_calls
    assert_canonical_error(server.ask(key, fallback="auto"), 409, "idempotency_conflict")

    answered = server.ask(f"{key}-again", fallback="none")
    assert answered.status_code == 200
    assert answered.json()["fallback"] is None
    assert server.wallet()["reserved_usd"] == "0"


@pytest.mark.parametrize("fault", FAULTS)
def test_another_model_steps_in_and_the_failed_one_is_left_alone_for_a_while(
    server: FaultyServer, fault: str
) -> None:
    engine = server.engines[FIRST]
    engine.behave = FAULTS[fault]
    assert fallback_of(server.ask()) == (FIRST, SECOND, "engine_unavailable")
    n_calls = engine.n_calls
    assert fallback_of(server.ask()) == (FIRST, SECOND, "recently_unavailable")
    assert fallback_of(server.ask(fallback=[SECOND])) == (FIRST, SECOND, "recently_unavailable")
    assert engine.n_calls == n_calls
    assert server.wallet()["reserved_usd"] == "0"


def test_when_every_engine_fails_the_first_failure_is_reported(server: FaultyServer) -> None:
    for engine in server.engines.values():
        engine.behave = FAULTS["raises"]
    told = server.ask("all-fail")
    error = assert_canonical_error(told, 503, "engine_unavailable", retryable=True)
    assert FIRST in error["message"]
    assert told.headers["Idempotency-Status"] == "terminal"
    assert server.wallet()["reserved_usd"] == "0"


def test_the_public_playground_meets_the_same_faults(server: FaultyServer) -> None:
    server.engines[FIRST].behave = server.engines[SECOND].behave = FAULTS["exits"]
    body = {"context": "c", "decisions": [{"id": "d", "question": "q?", "kind": "binary"}]}
    told = server.http.post("/v1/playground/decide", json=body)
    assert_canonical_error(told, 503, "engine_unavailable", retryable=True)
    server.engines[FIRST].behave = None
    assert server.http.post("/v1/playground/decide", json=body).status_code == 200


EXTREMES: dict[str, Callable[[Scored], Scored]] = {
    "huge": with_logits(lambda logits: np.full_like(logits, 3e38)),
    "far apart": with_logits(lambda logits: np.linspace(-3e38, 3e38, logits.size, dtype="f4")),
    "tiny": with_logits(lambda logits: np.full_like(logits, 1e-45)),
    "double": with_logits(lambda logits: logits.astype(np.float64)),
}


@pytest.mark.parametrize("extreme", EXTREMES)
def test_logits_at_the_edge_of_numbers_are_probabilities_all_the_same(
    server: FaultyServer, extreme: str
) -> None:
    server.engines[FIRST].behave = EXTREMES[extreme]
    response = server.ask(fallback="none")
    assert response.status_code == 200, response.text
    for result in response.json()["decisions"].values():
        probabilities = result["probabilities"].values()
        assert all(math.isfinite(p) and 0 <= p <= 1 for p in probabilities)
        assert sum(probabilities) == pytest.approx(1, abs=1e-6)


def test_a_slow_engine_is_waited_for(server: FaultyServer) -> None:
    def unchanged(scored: Scored) -> Scored:
        return scored

    server.engines[FIRST].behave = slowed(unchanged, 0.3)
    response = server.ask("slow", fallback="none")
    assert response.status_code == 200
    assert response.json()["timing_ms"]["score"] >= 290


def test_an_engine_that_hangs_is_the_deadline_and_then_refused_at_once() -> None:
    with faulty_server(deadline_s=0.5) as server:
        engine = server.engines[FIRST]
        engine.hang()
        late = server.ask("late", fallback="none")
        assert_canonical_error(late, 504, "deadline_exceeded", retryable=True)
        assert late.headers["Idempotency-Status"] == "terminal"
        assert server.wallet()["reserved_usd"] == "0"
        # Nothing of this request runs, so its key stays free.
        refused = server.ask("refused", fallback="none")
        assert_canonical_error(refused, 503, "engine_unavailable", retryable=True)
        assert float(refused.headers["Retry-After"]) > 0
        assert "Idempotency-Status" not in refused.headers
        assert engine.n_calls == 1

        engine.may_answer.set()
        again = server.ask("late", fallback="none")
        assert_canonical_error(again, 504, "deadline_exceeded", retryable=True)
        assert again.headers["X-Operation-ID"] == late.headers["X-Operation-ID"]
        assert _until_answered(server, "refused").json()["fallback"] is None
        assert server.wallet()["reserved_usd"] == "0"


def test_another_model_steps_in_for_an_engine_that_hangs() -> None:
    with faulty_server(deadline_s=3) as server:
        engine = server.engines[FIRST]
        engine.hang()
        assert fallback_of(server.ask("hung")) == (FIRST, SECOND, "deadline_exceeded")
        assert fallback_of(server.ask()) == (FIRST, SECOND, "recently_unavailable")
        assert engine.n_calls == 1
        charged = server.wallet()
        assert fallback_of(server.ask("hung")) == (FIRST, SECOND, "deadline_exceeded")
        assert server.wallet() == charged
        assert charged["reserved_usd"] == "0"


def _until_answered(server: FaultyServer, key: str) -> httpx.Response:
    """Ask as a client does: again while the error is retryable."""

    def answer() -> list[httpx.Response]:
        response = server.ask(key, fallback="none")
        if response.status_code == 200:
            return [response]
        assert response.json()["error"]["code"] == "engine_unavailable"
        return []

    return wait_until(answer)[0]
