"""Servers killed while they move an alias: every answer is by one version, and says by which."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from faults.processes import serve_process

#: Seconds after which a move is in effect in every process.
EFFECT_S = 1.0
_NAMED = "/v1/named-decisions"
REQUEST = {"decision": "triage", "context": "Where is my parcel?"}


def _version(number: int) -> dict[str, object]:
    """Return a version whose decision's id is its number, so that a mix of two shows."""
    decision = {"id": f"v{number}", "question": f"Question {number}?", "outcomes": ["a", "b"]}
    return {"decisions": [decision]}


def _answered_by(http: httpx.Client) -> int:
    response = http.post("/v1/decide", json=REQUEST)
    assert response.status_code == 200, response.text
    answer = response.json()
    number: int = answer["decision"]["version"]
    assert list(answer["decisions"]) == [f"v{number}"]
    assert answer["decision"] == {"name": "triage", "version": number, "alias": "production"}
    return number


#: A start of the server takes seconds, and many more where the machine is busy.
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("n_kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_kill_during_a_move_leaves_the_old_version_or_the_new_one(
    tmp_path: Path, n_kills: int
) -> None:
    home = tmp_path / "home"
    over = threading.Event()

    def ask_until_over(url: str) -> int:
        n_answers = 0
        with httpx.Client(base_url=url, timeout=60) as http:
            while not over.is_set():
                _answered_by(http)
                n_answers += 1
        return n_answers

    def move_on(url: str) -> None:
        with suppress(httpx.TransportError), httpx.Client(base_url=url, timeout=60) as http:
            for number in range(10_000):
                body = {"version": 1 + number % 2, "overrule": "a test"}
                http.put(f"{_NAMED}/triage/aliases/production", json=body)

    with serve_process(home) as stays, serve_process(home) as dies:
        stays.start()
        with httpx.Client(base_url=stays.url, timeout=60) as http, ThreadPoolExecutor(2) as pool:
            http.post(_NAMED, json={"name": "triage", **_version(1)}).raise_for_status()
            http.post(f"{_NAMED}/triage/versions", json=_version(2)).raise_for_status()
            asking = pool.submit(ask_until_over, stays.url)
            try:
                for kill in range(n_kills):
                    dies.start()
                    moving = pool.submit(move_on, dies.url)
                    over.wait(0.05 + 0.02 * kill)
                    dies.kill()
                    moving.result(60)
                    over.wait(EFFECT_S)
                    alias = http.get(f"{_NAMED}/triage").json()["aliases"][0]["version"]
                    last = http.get(f"{_NAMED}/triage/history").json()["data"][0]["to_version"]
                    assert _answered_by(http) == alias == last
            finally:
                over.set()
            assert asking.result(60) > n_kills


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_share_and_a_rollback_are_in_effect_in_both_processes_within_a_second(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    texts = [f"Ticket {number}" for number in range(30)]

    def aliases(url: str) -> list[str]:
        with httpx.Client(base_url=url, timeout=60) as http:
            return [
                http.post("/v1/decide", json={"decision": "triage", "context": text}).json()[
                    "decision"
                ]["alias"]
                for text in texts
            ]

    def versions(url: str) -> set[int]:
        with httpx.Client(base_url=url, timeout=60) as http:
            return {_answered_by(http) for _ in range(5)}

    with serve_process(home) as first, serve_process(home) as second:
        first.start()
        second.start()
        with httpx.Client(base_url=first.url, timeout=60) as http:
            http.post(_NAMED, json={"name": "triage", **_version(1)}).raise_for_status()
            http.post(f"{_NAMED}/triage/versions", json=_version(2)).raise_for_status()
            path = f"{_NAMED}/triage/aliases"
            http.put(f"{path}/staging", json={"version": 2}).raise_for_status()
            assert set(aliases(second.url)) == {"production"}
            share = {"to": "staging", "share": 0.5}
            http.put(f"{path}/production/share", json=share).raise_for_status()
            threading.Event().wait(EFFECT_S)
            split = aliases(first.url)
            assert set(split) == {"production", "staging"}
            assert aliases(second.url) == split
            move = {"version": 2, "overrule": "a test"}
            http.put(f"{path}/production", json=move).raise_for_status()
            threading.Event().wait(EFFECT_S)
            assert versions(first.url) == versions(second.url) == {2}
            http.post(f"{path}/production/rollback", json={}).raise_for_status()
            threading.Event().wait(EFFECT_S)
            assert versions(first.url) == versions(second.url) == {1}
