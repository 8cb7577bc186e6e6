"""The cost of a named decision over the same request in full: CPU of the server's process, paired.

    python tests/benchmarks/named.py [--pairs N] [--engine NAME]

A pair asks about two contexts that differ in a letter, named and in full, in an order that changes from pair to pair.
The machine may be busy: the CPU clock of the process is read, not that of the wall.
"""

from __future__ import annotations

import argparse
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import httpx
import numpy as np
import tenacity

from steelyard.calibration.intervals import percentile_interval, resample_totals
from steelyard.settings import child_environment

#: Three questions as support desks ask them, with descriptions.
DECISIONS = [
    {
        "id": "team",
        "question": "Which team should own this message?",
        "outcomes": {
            "billing": "charges, invoices, refunds and payment methods",
            "shipping": "where a parcel is, delivery dates and addresses",
            "account": "sign-in, passwords and personal data",
            "product": "how something works, faults and spare parts",
        },
        "abstain": {"min_probability": 0.6},
    },
    {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"},
    {
        "id": "urgency",
        "kind": "ordinal",
        "question": "How soon does it need an answer?",
        "rubric": ["can wait", "today", "at once"],
    },
]
_WORDS = ("invoice", "parcel", "late", "refund", "broken", "order", "charged", "twice", "password")
#: Pairs before those that count.
_WARM_UP = 40


def main() -> None:
    """Measure, and print the ratio with its interval."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_500)
    parser.add_argument("--engine", default="onnxruntime-int8")
    given = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "steelyard", "serve", "--home", home]
        command += ["--port", str(port), "--engine", given.engine, "--threads", "1"]
        unlimited = {"STEELYARD_JOBS": "off", "STEELYARD_REQUESTS_PER_MINUTE": "0"}
        unlimited["STEELYARD_TOKENS_PER_MINUTE"] = "0"
        process = subprocess.Popen(
            command,
            env={**child_environment(), **unlimited},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _measure(process.pid, f"http://127.0.0.1:{port}", given.pairs)
        finally:
            process.terminate()
            process.wait(30)


def _measure(pid: int, url: str, n_pairs: int) -> None:
    numbers = random.Random(0)
    pairs = []
    with httpx.Client(base_url=url, timeout=60) as http:
        _wait(http)
        named = {"name": "desk", "decisions": DECISIONS}
        http.post("/v1/named-decisions", json=named).raise_for_status()
        bodies = {"named": {"decision": "desk"}, "full": {"decisions": DECISIONS}}
        for number in range(-_WARM_UP, n_pairs):
            words = " ".join(numbers.choices(_WORDS, k=60))
            spent = {}
            for kind in ("named", "full") if number % 2 else ("full", "named"):
                # Not the same text twice: what a context gave may be kept.
                context = f"{kind[0]} {number} {words}"
                began = _cpu_s(pid)
                answer = http.post("/v1/decide", json={**bodies[kind], "context": context})
                spent[kind] = _cpu_s(pid) - began
                answer.raise_for_status()
            if number >= 0:
                pairs.append((spent["named"], spent["full"]))
    ratio = statistics.median(named / full for named, full in pairs)
    totals = resample_totals(np.array(pairs))
    interval = percentile_interval(totals[:, 0] / totals[:, 1])
    of_all = sum(named for named, _ in pairs) / sum(full for _, full in pairs)
    each_ms = 1e3 * statistics.median(full for _, full in pairs)
    saved_ms = 1e3 * statistics.median(named - full for named, full in pairs)
    print(
        f"{n_pairs} pairs: a request in full takes {each_ms:.2f} ms of CPU, a named one "
        f"{saved_ms:+.3f} ms (median of pairs); named over full: median of ratios {ratio:.4f}, of "
        f"sums {of_all:.4f} (95 % interval {interval.low:.4f} to {interval.high:.4f})"
    )


def _cpu_s(pid: int) -> float:
    # The clock of a process's CPU time, as Linux numbers it: see clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(httpx.TransportError),
    wait=tenacity.wait_fixed(0.1),
    stop=tenacity.stop_after_delay(60),
)
def _wait(http: httpx.Client) -> None:
    http.get("/v1/health").raise_for_status()


if __name__ == "__main__":
    main()
