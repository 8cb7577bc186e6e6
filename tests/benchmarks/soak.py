"""The server's memory over hours of ordinary calls at a steady pace; see README.md."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from crowd import serving
from machine import describe_machine
from quality_tables import text_table
from transfers import memory_of
from workloads import CONTEXTS, make_context, make_payload

_WORKERS = 8
_SAMPLE_S = 10.0
_ROWS = 200
_QUESTION = {"id": "kind", "question": "Is it long?", "outcomes": {"yes": None, "no": None}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Call a server of this interpreter; return 0 when its memory stays flat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=21.0, help="requests a second")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()))
    with (
        serving(sys.executable) as (port, keys),
        httpx.Client(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {keys['crowd']}"},
            timeout=60.0,
        ) as http,
    ):
        calls = Calls(http)
        samples = _soak(calls, port, options.minutes * 60, options.rate)
    found = growth(samples)
    print(
        text_table(["minute", "MB"], [[f"{s / 60:.0f}", f"{mb:.0f}"] for s, mb in _thin(samples)])
    )
    print(
        f"{calls.statuses.total():,} calls {dict(calls.statuses)}; mean of the second quarter "
        f"{found['second_quarter_mb']:.0f} MB, of the last {found['last_quarter_mb']:.0f} MB "
        f"({found['change']:+.1%}); slope of the last three quarters "
        f"{found['slope_mb_per_hour']:+.1f} MB an hour"
    )
    if options.json:
        shown = {"statuses": calls.statuses, "samples": samples, **found}
        options.json.write_text(json.dumps(shown, indent=1) + "\n")
    return 0 if abs(found["change"]) <= _FLAT else 1


#: By how much the last quarter's mean may differ from the second quarter's.
_FLAT = 0.05


def growth(samples: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return how memory moved once the first quarter, in which caches fill, was over.

    Parameters
    ----------
    samples : sequence of (float, float)
        Seconds from the start, megabytes; at least eight.
    """
    seconds, memory = np.array(samples).T
    quarters = np.array_split(memory, 4)
    before, after = float(quarters[1].mean()), float(quarters[3].mean())
    settled = slice(len(quarters[0]), None)
    slope = float(np.polyfit(seconds[settled] / 3600, memory[settled], 1)[0])
    return {
        "second_quarter_mb": before,
        "last_quarter_mb": after,
        "change": after / before - 1,
        "slope_mb_per_hour": slope,
    }


def _thin(samples: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return list(samples[:: max(1, len(samples) // 24)])


class Calls:
    """The calls of an account that decides, reports, reads its log, and keeps a few datasets."""

    def __init__(self, http: httpx.Client) -> None:
        self.statuses: Counter[str] = Counter()
        self._http = http
        self._random = random.Random(20261123)
        self._numbers = itertools.count(1)
        self._decided: deque[tuple[str, str]] = deque(maxlen=200)
        self._datasets: deque[str] = deque()
        self._kinds: list[tuple[int, Callable[[], httpx.Response | None]]] = [
            (60, self._decide),
            (12, self._report),
            (4, lambda: self._get("/v1/decisions/log", limit=50)),
            (4, lambda: self._get("/v1/datasets")),
            (4, lambda: self._get("/v1/models")),
            (4, lambda: self._get("/v1/account")),
            (4, lambda: self._get("/v1/health")),
            (3, self._lint),
            (2, self._upload),
            (2, self._download),
            (1, lambda: self._get("/v1/unknown")),
        ]

    def one(self) -> None:
        """Make one call, of a kind by its weight; count how it was answered."""
        weights = [weight for weight, _ in self._kinds]
        call = self._random.choices(self._kinds, weights)[0][1]
        try:
            answer = call()
        except httpx.HTTPError as error:
            self.statuses[type(error).__name__] += 1
            return
        if answer is not None:
            self.statuses[str(answer.status_code)] += 1

    def _get(self, path: str, **query: Any) -> httpx.Response:
        return self._http.get(path, params=query)

    def _payload(self) -> dict[str, Any]:
        length = CONTEXTS[self._random.choice(["short", "short", "short", "medium"])]
        context = make_context(length, next(self._numbers))
        return json.loads(make_payload(context=context, n_questions=2, n_outcomes=4))

    def _decide(self) -> httpx.Response:
        payload = {**self._payload(), "store": True}
        number = next(self._numbers)
        headers = {"Idempotency-Key": f"soak-{number}"} if number % 3 else {}
        answer = self._http.post("/v1/decide", json=payload, headers=headers)
        if answer.status_code == 200:
            decided = answer.json()
            name, result = next(iter(decided["decisions"].items()))
            self._decided.append((decided["id"], json.dumps({name: result["top"]})))
        return answer

    def _report(self) -> httpx.Response | None:
        if not self._decided:
            return None
        decision_id, outcomes = self._random.choice(self._decided)
        body = {"decision_id": decision_id, "outcomes": json.loads(outcomes)}
        return self._http.post("/v1/feedback", json=body)

    def _lint(self) -> httpx.Response:
        return self._http.post("/v1/lint", json=self._payload())

    def _upload(self) -> httpx.Response:
        number = next(self._numbers)
        if len(self._datasets) > 5:
            return self._http.delete(f"/v1/datasets/{self._datasets.popleft()}")
        rows = [
            {
                "context": make_context(CONTEXTS["short"], number * 1_000 + n),
                "decisions": [_QUESTION],
                "targets": {"kind": {"yes": float(n % 2), "no": float(1 - n % 2)}},
            }
            for n in range(_ROWS)
        ]
        answer = self._http.post(
            "/v1/datasets",
            content="\n".join(map(json.dumps, rows)),
            headers={
                "Content-Type": "application/x-ndjson",
                "X-Dataset-Name": f"soak {number}",
            },
        )
        if answer.status_code == 200:
            self._datasets.append(answer.json()["id"])
        return answer

    def _download(self) -> httpx.Response | None:
        if not self._datasets:
            return None
        return self._get(f"/v1/datasets/{self._random.choice(self._datasets)}/download")


def _soak(calls: Calls, port: int, seconds: float, rate: float) -> list[tuple[float, float]]:
    """Make calls at a pace for a time; return when memory was read, and megabytes."""
    samples: list[tuple[float, float]] = []
    began = time.monotonic()
    sampled_at, n_sent = 0.0, 0
    every_s = min(_SAMPLE_S, seconds / 24)
    free = threading.BoundedSemaphore(2 * _WORKERS)
    with ThreadPoolExecutor(_WORKERS) as pool:
        while (now := time.monotonic() - began) < seconds:
            if now >= sampled_at:
                samples.append((now, memory_of(port)))
                sampled_at += every_s
            # What a busy machine did not start in its second is not sent later in a burst.
            if free.acquire(blocking=False):
                pool.submit(calls.one).add_done_callback(lambda _: free.release())
            n_sent += 1
            time.sleep(max(0.0, n_sent / rate - (time.monotonic() - began)))
    return samples


if __name__ == "__main__":
    sys.exit(main())
