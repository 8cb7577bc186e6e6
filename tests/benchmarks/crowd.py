"""The effect of one account's crowd on another's short requests; see README.md beside this file."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from quality_tables import text_table
from service_load import make_request
from workloads import CONTEXTS, make_context, make_payload

#: Characters of the long contexts, and words of the public's: some 60,000 tokens.
LONG, PUBLIC_LONG = 200_000, 240_000
#: Seconds between two requests of the quiet account.
_PAUSE_S = 0.2
_START_S = 120
_ROWS = (
    "quiet, alone",
    "quiet, beside a crowd",
    "quiet, beside the public",
    "quiet, beside short calls",
    "quiet, beside short calls and a stream",
    "quiet, beside uploads",
)
#: Connections of the crowd of short calls, and uploads at once.
_SHORT_CALLS, _UPLOADS = 100, 4


@dataclass(slots=True)
class Seen:
    """The observations of one kind of client."""

    ms: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def quantile(self, share: float) -> float:
        """Return a quantile of the milliseconds of its 200s, NaN without any."""
        return float(np.quantile(self.ms, share)) if self.ms else float("nan")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each server; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="PYTHON", help="interpreter that has another version")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement")
    parser.add_argument("--clients", type=int, nargs="*", default=[32, 200, 600])
    parser.add_argument("--rows", type=int, default=30_000, help="of an upload: some 15 MB")
    parser.add_argument("--rounds", type=int, default=1, help="of which the medians are printed")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    pythons = {"this": sys.executable} | ({"before": options.against} if options.against else {})
    print("\n".join(describe_machine()))
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
    for _ in range(options.rounds):
        for name, python in pythons.items():
            with serving(python) as (port, keys):
                measured = asyncio.run(
                    _measure(port, keys, options.seconds, options.clients, options.rows)
                )
                rounds[name].append(measured)
    results = {name: _medians(measured) for name, measured in rounds.items()}
    print(_tables(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


@contextmanager
def serving(python: str, models: str = "", **settings: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Run a server with two accounts, and perhaps connected models; yield its port and their keys."""
    with tempfile.TemporaryDirectory(prefix="steelyard-crowd-") as home:
        if models:
            Path(home, "models.toml").write_text(models)
        environment = {
            **os.environ,
            "STEELYARD_HOME": home,
            "STEELYARD_ACCOUNTS": "on",
            "STEELYARD_REQUESTS_PER_MINUTE": "0",
            "STEELYARD_TOKENS_PER_MINUTE": "0",
            "STEELYARD_PUBLIC_REQUESTS_PER_MINUTE": "0",
            "STEELYARD_LOG_LEVEL": "error",
            **settings,
        }

        def run(*words: str) -> Any:
            command = [python, "-m", "steelyard", *words, "--json"]
            done = subprocess.run(command, env=environment, capture_output=True, check=True)
            return json.loads(done.stdout)

        keys = {}
        for account in ("quiet", "crowd"):
            run("account", "create", account)
            keys[account] = run("key", "create", "--account", account)["key"]
        process = subprocess.Popen(
            [python, "-m", "steelyard", "serve", "--port", "0"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield port_of(Path(home, "serve.json"), process), keys
        finally:
            process.terminate()
            process.wait(60)


def port_of(path: Path, process: subprocess.Popen[bytes]) -> int:
    """Return the port that a starting server writes to its ``serve.json``."""
    give_up_at = time.monotonic() + _START_S
    while time.monotonic() < give_up_at and process.poll() is None:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return int(json.loads(path.read_bytes())["url"].rpartition(":")[2])
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    raise RuntimeError("The server did not start.")


async def _measure(
    port: int, keys: dict[str, str], seconds: float, n_clients: Sequence[int], n_rows: int
) -> dict[str, Any]:
    short = make_payload(context=make_context(CONTEXTS["short"], 0), n_questions=1, n_outcomes=4)
    long = make_payload(context=make_context(LONG, 1), n_questions=1, n_outcomes=4)
    free = make_payload(context=make_context(PUBLIC_LONG, 2), n_questions=1, n_outcomes=4)
    bearer = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
    quiet = make_request(port, short, bearer["quiet"])
    noisy = make_request(port, short, bearer["crowd"])
    four = make_payload(context=make_context(CONTEXTS["short"], 0), n_questions=4, n_outcomes=4)
    calls = [make_request(port, four, bearer["crowd"])] * _SHORT_CALLS
    heavy = make_request(port, long, bearer["crowd"])
    public = make_request(port, free, {}).replace(b"/v1/decide", b"/v1/playground/decide", 1)
    await repeat(port, quiet, Seen(), 2.0, 0.0)  # the first answers load and measure
    rows: dict[str, Any] = {}
    crowds: dict[str, list[bytes]] = {
        _ROWS[0]: [],
        _ROWS[1]: [heavy, *[noisy] * 200],
        _ROWS[2]: [public] * 3,
        _ROWS[3]: calls,
        _ROWS[4]: [heavy, *calls],
        _ROWS[5]: [_make_upload(port, bearer["crowd"], n_rows)] * _UPLOADS,
    }
    for name, others in crowds.items():
        seen, beside = Seen(), Seen()
        async with crowd(port, others, beside):
            await repeat(port, quiet, seen, seconds, _PAUSE_S)
        alone = rows.get(_ROWS[0], {}).get("p95_ms", seen.quantile(0.95))
        refused = sum(n for status, n in beside.statuses.items() if status >= 400)
        rows[name] = _figures(seen) | {
            "times_alone": seen.quantile(0.95) / alone,
            "others_refused": refused / max(beside.statuses.total(), 1),
        }
    for number in n_clients:
        seen = Seen()
        began = time.monotonic()
        async with crowd(port, [noisy] * number, seen):
            await asyncio.sleep(seconds)
            answered_in_s = time.monotonic() - began
            figures = _figures(seen) | {"a_second": seen.statuses[200] / answered_in_s}
        rows[f"{number} clients"] = figures
    return rows


def _make_upload(port: int, headers: dict[str, str], n_rows: int) -> bytes:
    decision = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}
    rows = [
        {
            "context": f"{number} {make_context(300, number % 50)}",
            "decisions": [decision],
            "targets": {"team": decision["outcomes"][number % 2]},
        }
        for number in range(n_rows)
    ]
    body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    request = make_request(port, body, {**headers, "X-Dataset-Name": "uploaded"})
    request = request.replace(b"/v1/decide", b"/v1/datasets", 1)
    return request.replace(b"application/json", b"application/x-ndjson", 1)


def _medians(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of each figure, and the answers of all rounds together."""
    merged: dict[str, Any] = {}
    for name in rounds[0]:
        rows = [one[name] for one in rounds]
        statuses: Counter[str] = sum((Counter(row["statuses"]) for row in rows), Counter())
        figures = {
            key: float(np.median([row[key] for row in rows]))
            for key in rows[0]
            if key != "statuses"
        }
        merged[name] = figures | {"statuses": dict(sorted(statuses.items()))}
    return merged


def _figures(seen: Seen) -> dict[str, Any]:
    return {
        "p50_ms": seen.quantile(0.5),
        "p95_ms": seen.quantile(0.95),
        "statuses": {str(status): n for status, n in sorted(seen.statuses.items())},
    }


@asynccontextmanager
async def crowd(port: int, requests: Sequence[bytes], seen: Seen) -> AsyncIterator[None]:
    """Repeat each request over a connection of its own, from a second before the block to its end."""
    tasks = [asyncio.create_task(repeat(port, one, seen, None, 0.0)) for one in requests]
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def repeat(
    port: int, request: bytes, seen: Seen, seconds: float | None, pause_s: float
) -> None:
    """Ask again and again, over one connection; a refusal is obeyed, as SDKs do."""
    ends_at = None if seconds is None else time.monotonic() + seconds
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while ends_at is None or time.monotonic() < ends_at:
            began = time.perf_counter()
            writer.write(request)
            status, wait_s = await _read(reader)
            seen.statuses[status] += 1
            if status == 200:
                seen.ms.append((time.perf_counter() - began) * 1e3)
            await asyncio.sleep(max(wait_s, pause_s))
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[int, float]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    await reader.readexactly(int(fields[b"content-length"]))
    return int(head.split()[1]), float(fields.get(b"retry-after", 0))


def _tables(results: dict[str, dict[str, Any]]) -> str:
    header = [
        "server",
        "measured",
        "p50 ms",
        "p95 ms",
        "times alone",
        "others refused",
        "answered/s",
        "statuses",
    ]
    body = []
    for server, rows in results.items():
        for name, row in rows.items():
            times = f"{row['times_alone']:.1f}" if name in _ROWS else ""
            refused = f"{row['others_refused']:.0%}" if name in _ROWS else ""
            rate = f"{row['a_second']:.0f}" if "a_second" in row else ""
            told = ", ".join(f"{status}: {n}" for status, n in row["statuses"].items())
            body.append(
                [
                    server,
                    name,
                    f"{row['p50_ms']:.1f}",
                    f"{row['p95_ms']:.1f}",
                    times,
                    refused,
                    rate,
                    told,
                ]
            )
    return text_table(header, body)


if __name__ == "__main__":
    sys.exit(main())
