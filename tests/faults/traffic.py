"""Clients that ask, ask again and report, and remember the answers."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from faults.processes import PATIENCE_S

DECISIONS = [
    {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping", "other"]},
    {"id": "refund", "kind": "binary", "question": "Does the writer ask for money?"},
]


@dataclass
class Journal:
    """The answers to clients, and the requests without an answer."""

    answers: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)  # key: payload, body
    unheard: dict[str, bytes] = field(default_factory=dict)  # key: payload
    decided: dict[str, dict[str, Any]] = field(default_factory=dict)  # decision id: its answer
    reported: dict[str, dict[str, str]] = field(default_factory=dict)  # decision id: outcomes
    n_unheard: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)  # what was told instead: how often
    surprises: list[str] = field(default_factory=list)


#: Over the rate; a fault; a server that died; no server, or no state; a server that took too long.
_PASSING = {429, 500, 502, 503, 504}


class Client(threading.Thread):
    """One caller that goes on whatever happens to the server.

    Parameters
    ----------
    url : str
        The server.
    api_key : str
        Its secret.
    name : str
        No other client has it: keys and contexts begin with it.
    seed : int
        Of its choices.
    may_wait : bool
        Whether a repeated key may be answered that it is in progress: another process may still
        count as its owner for a moment.
    may_fail : bool
        Whether it may be asked to come again, as a server, its state or its minute is not to be had.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        name: str,
        seed: int,
        *,
        may_wait: bool,
        may_fail: bool = False,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.journal = Journal()
        self.is_stopping = threading.Event()
        self._random = random.Random(seed)
        self._may_wait = may_wait
        self._may_fail = may_fail
        self._n_sent = 0
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"},
            timeout=PATIENCE_S,
        )

    def run(self) -> None:
        choices = [self._decide_keyed] * 4 + [self._decide_unkeyed] * 2
        choices += [self._repeat_answered, self._report, self._report]
        try:
            while not self.is_stopping.is_set():
                if self.journal.unheard:
                    self._repeat_unheard()
                else:
                    self._random.choice(choices)()
        except BaseException as error:  # noqa: BLE001
            self.journal.surprises.append(repr(error))

    def settle_unheard(self) -> None:
        """Ask again for everything that was not heard; for when the server stays up."""
        while self.journal.unheard and not self.journal.surprises:
            self._repeat_unheard()

    def check_replays(self) -> None:
        """Ask again for every answer: the same bytes come back."""
        for key, (payload, body) in self.journal.answers.items():
            response = self._http.post("/v1/decide", content=payload, headers=_keyed(key))
            assert (response.status_code, response.content) == (200, body), key
            assert response.headers["Idempotency-Replayed"] == "true"

    def check_feedback(self) -> None:
        """Report on every stored decision that was acknowledged."""
        for decision_id in self.journal.decided:
            self._report(decision_id)
        assert self.journal.surprises == []
        assert self.journal.reported.keys() == self.journal.decided.keys()

    def close(self) -> None:
        self._http.close()

    def _decide_keyed(self) -> None:
        key = f"{self.name}-{self._n_sent}"
        self._post_decide(self._payload(), key)

    def _decide_unkeyed(self) -> None:
        self._post_decide(self._payload(), None)

    def _repeat_unheard(self) -> None:
        key, payload = next(iter(self.journal.unheard.items()))
        self._post_decide(payload, key)

    def _repeat_answered(self) -> None:
        if self.journal.answers:
            key = self._random.choice(list(self.journal.answers))
            self._post_decide(self.journal.answers[key][0], key)

    def _payload(self) -> bytes:
        self._n_sent += 1
        context = f"{self.name} {self._n_sent}: " + "paid twice " * self._random.randint(1, 40)
        return json.dumps({"context": context, "decisions": DECISIONS, "store": True}).encode()

    def _post_decide(self, payload: bytes, key: str | None) -> None:
        response = self._post("/v1/decide", payload, key)
        if response is None or self._is_pending(response):
            if key is not None and key not in self.journal.answers:
                self.journal.unheard[key] = payload
            return
        if response.status_code != 200:
            self.journal.surprises.append(f"{key}: {response.status_code} {response.text}")
            return
        answer = response.json()
        self.journal.decided[answer["id"]] = answer
        if key is not None:
            self.journal.unheard.pop(key, None)
            before = self.journal.answers.setdefault(key, (payload, response.content))
            if before[1] != response.content:
                self.journal.surprises.append(f"{key}: another answer than before")

    def _report(self, decision_id: str | None = None) -> None:
        if decision_id is None:
            if not self.journal.decided:
                return
            decision_id = self._random.choice(list(self.journal.decided))
        # What is reported on a decision is always the same, so a report may be sent again.
        results = self.journal.decided[decision_id]["decisions"]
        outcomes = {name: result["top"] for name, result in results.items()}
        payload = json.dumps({"decision_id": decision_id, "outcomes": outcomes}).encode()
        key = f"report-{decision_id}" if self._random.random() < 0.5 else None
        response = self._post("/v1/feedback", payload, key)
        if response is None:
            return
        if response.status_code == 200:
            self.journal.reported[decision_id] = outcomes
        else:
            self.journal.surprises.append(f"report: {response.status_code} {response.text}")

    def _post(self, path: str, payload: bytes, key: str | None) -> httpx.Response | None:
        try:
            response = self._http.post(path, content=payload, headers=_keyed(key))
        except httpx.TransportError as error:
            self.journal.n_unheard += 1
            self.journal.unanswered[type(error).__name__] += 1
            self.is_stopping.wait(0.02)
            return None
        if self._may_fail and (response.status_code in _PASSING or _is_unknown(response)):
            self.journal.n_unheard += response.status_code != 429
            self.journal.unanswered[f"{response.status_code} {_code_of(response)}"] += 1
            self.is_stopping.wait(0.1)
            return None
        return response

    def _is_pending(self, response: httpx.Response) -> bool:
        if not self._may_wait or response.status_code != 409:
            return False
        is_pending: bool = response.json()["error"]["code"] == "request_in_progress"
        if is_pending:
            self.is_stopping.wait(0.05)
        return is_pending


@contextmanager
def clients(
    url: str,
    api_key: str,
    *,
    seed: int,
    n: int = 4,
    may_wait: bool = False,
    may_fail: bool = False,
) -> Iterator[list[Client]]:
    """Run clients; they stop at the end of the block at the latest."""
    running = [
        Client(
            url,
            api_key,
            f"c{number}",
            seed * 1000 + number,
            may_wait=may_wait,
            may_fail=may_fail,
        )
        for number in range(n)
    ]
    try:
        for client in running:
            client.start()
        yield running
    finally:
        stop(running)
        for client in running:
            client.close()


def stop(running: list[Client]) -> None:
    """Wait until every client has finished its work."""
    for client in running:
        client.is_stopping.set()
    for client in running:
        client.join(PATIENCE_S)
        assert not client.is_alive()


def _code_of(response: httpx.Response) -> str:
    """Return the code of an error; a proxy's own have none."""
    with suppress(ValueError, LookupError):
        return str(response.json()["error"]["code"])
    return ""


def _is_unknown(response: httpx.Response) -> bool:
    """Whether a request without a key may have been charged or not: its server lost the state."""
    if response.status_code != 409:
        return False
    is_unknown: bool = response.json()["error"]["code"] == "outcome_unknown"
    return is_unknown


def _keyed(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}
