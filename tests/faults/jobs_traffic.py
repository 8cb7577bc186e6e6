"""A client that starts evaluations, again and again, and remembers every acknowledged one."""

from __future__ import annotations

import threading
from typing import Any

import httpx

from faults.processes import PATIENCE_S
from support.datasets.dataset_rows import make_rows

N_ROWS = 300
_UNFINISHED = {"queued", "running"}


class JobsClient(threading.Thread):
    """Makes a dataset, has it evaluated, waits for the end, and begins anew."""

    def __init__(self, url: str, api_key: str) -> None:
        super().__init__(daemon=True)
        self.is_stopping = threading.Event()
        self.ended: dict[str, dict[str, Any]] = {}  # by the evaluation's id, as it ended
        self.surprises: list[str] = []
        self._n_rounds = 0
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {api_key}"}, timeout=PATIENCE_S
        )

    def run(self) -> None:
        try:
            while not self.is_stopping.is_set():
                self._round()
        except BaseException as error:  # noqa: BLE001
            self.surprises.append(repr(error))
        finally:
            self._http.close()

    def _round(self) -> None:
        self._n_rounds += 1
        number = self._n_rounds
        rows = make_rows(N_ROWS, start=number * N_ROWS)
        made = self._ask("POST", "/v1/datasets", f"d{number}", name=f"d{number}", evaluation=rows)
        asked = {"dataset_id": made["id"], "models": ["hashing"]}
        begun = self._ask("POST", "/v1/evaluations", f"e{number}", **asked)
        evaluation_id = begun["data"][0]["id"]
        done = 0
        while True:
            seen = self._ask("GET", f"/v1/evaluations/{evaluation_id}")
            assert seen["completed_rows"] >= done, seen
            done = seen["completed_rows"]
            if seen["status"] not in _UNFINISHED:
                self.ended[evaluation_id] = seen
                return
            # Not asked to stop here: what was begun is waited for.
            threading.Event().wait(0.2)

    def _ask(self, method: str, path: str, key: str | None = None, **body: Any) -> dict[str, Any]:
        """Ask until there is an answer; the key makes each thing once."""
        headers = {} if key is None else {"Idempotency-Key": key}
        for _ in range(2000):
            try:
                answer = self._http.request(method, path, json=body or None, headers=headers)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.is_success:
                told: dict[str, Any] = answer.json()
                return told
            if answer is not None and answer.status_code < 429 and answer.status_code != 409:
                break
            threading.Event().wait(0.1)
        raise AssertionError(f"{method} {path}: {'no answer' if answer is None else answer.text}")
