"""The cost of a request and the length of a start, beside another version; see README.md."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from crowd import port_of, serving
from machine import describe_machine
from quality_tables import text_table
from service_load import make_request, run_clients
from transfers import listener
from workloads import CONTEXTS, make_context, make_payload

from steelyard.calibration.intervals import ratio_intervals

_ENGINES = ("auto", "hashing")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both versions by turns; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="PYTHON", required=True, help="of another version")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=200, help="of a round")
    parser.add_argument("--starts", type=int, default=7, help="of processes; 0 for none")
    parser.add_argument("--engine", choices=_ENGINES, action="append", help="both, when left out")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    pythons = {"this": sys.executable, "before": options.against}
    print("\n".join(describe_machine()))
    figures: dict[str, dict[str, list[float]]] = {}
    for engine in options.engine or _ENGINES:
        figures[f"CPU ms a request, engine {engine}"] = _requests(
            pythons, engine, options.rounds, options.requests
        )
    if options.starts:
        figures["start to first answer, ms"] = _starts(pythons, options.starts)
    body = []
    for name, by_version in figures.items():
        shown = [
            f"{np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "-"
            for values in by_version.values()
        ]
        body.append([name, *shown, ratio_text(by_version["this"], by_version["before"])])
    print(text_table(["median (least to most)", *pythons, "this / before (95 %)"], body))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def ratio_text(values: Sequence[float], others: Sequence[float]) -> str:
    """Return the ratio of two means whose rounds are pairs, with its 95 % interval."""
    if not values:
        return "not measured"
    pairs = np.asarray(values)[:, None], np.asarray(others)[:, None]
    (low,), (high,) = ratio_intervals(*pairs, lows=[-np.inf], highs=[np.inf])
    return f"{sum(values) / sum(others):.3f} ({low:.3f} to {high:.3f})"


def _requests(
    pythons: dict[str, str], engine: str, rounds: int, n_requests: int
) -> dict[str, list[float]]:
    """Return the servers' CPU milliseconds of a stored, keyed and charged request, by round."""
    numbers = itertools.count()
    found: dict[str, list[float]] = {version: [] for version in pythons}
    with ExitStack() as stack:
        servers = {
            version: stack.enter_context(serving(python, STEELYARD_ENGINE=engine))
            for version, python in pythons.items()
        }
        for round_number in range(rounds + 1):
            for version, (port, keys) in servers.items():
                requests = []
                for _ in range(n_requests):
                    number = next(numbers)
                    payload = make_payload(
                        context=make_context(CONTEXTS["short"], number), n_questions=3, n_outcomes=4
                    )
                    headers = {
                        "Authorization": f"Bearer {keys['quiet']}",
                        "Idempotency-Key": f"versions-{number}",
                    }
                    requests.append(make_request(port, payload, headers))
                process = listener(port)
                began = sum(process.cpu_times()[:2])
                run_clients(port, [requests])
                used = (sum(process.cpu_times()[:2]) - began) * 1e3 / n_requests
                if round_number:  # the first warms up
                    found[version].append(used)
    return found


def _starts(pythons: dict[str, str], n_starts: int) -> dict[str, list[float]]:
    """Return milliseconds from a process's start to its first answered decide, homes kept."""
    found: dict[str, list[float]] = {version: [] for version in pythons}
    with tempfile.TemporaryDirectory(prefix="steelyard-versions-") as folder:
        for number in range(n_starts + 1):
            for version, python in pythons.items():
                took = _start(python, Path(folder, version))
                if number:  # the first makes the home
                    found[version].append(took)
    return found


def _start(python: str, home: Path) -> float:
    payload = make_payload(context=make_context(CONTEXTS["short"], 0), n_questions=1, n_outcomes=4)
    (home / "serve.json").unlink(missing_ok=True)
    began = time.perf_counter()
    process = subprocess.Popen(
        [python, "-m", "steelyard", "serve", "--port", "0"],
        env={**os.environ, "STEELYARD_HOME": str(home), "STEELYARD_LOG_LEVEL": "error"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = port_of(home / "serve.json", process)
        run_clients(port, [[make_request(port, payload, {})]])
        return (time.perf_counter() - began) * 1e3
    finally:
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    sys.exit(main())
