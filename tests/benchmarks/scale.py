"""The gain of more workers of a server and of more processes at one state; see README.md beside this file."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from quality_tables import text_table
from service_load import make_request, run_clients
from sqlalchemy import Engine, NullPool, create_engine, event, text
from workloads import CONTEXTS, make_context, make_payload

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from steelyard.accounts.service import AccountService
from steelyard.caller import Caller
from steelyard.decision_log.store import StoredDecision, insert_decision
from steelyard.ids import new_id
from steelyard.operations.service import OperationLog
from steelyard.operations.write import Write
from steelyard.storage import open_state
from support.servers.postgres_server import PostgresServer, postgres_server
from support.waiting import started

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
KINDS = (SQLITE, POSTGRESQL)
_MODEL, _PRICE = "hashing", 1_000
_CREDIT = 10**17
_START_S = 120
#: Operations after which a driver has prepared every statement.
_WARM_UP = 10
_TICKS = os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected measurements; return the exit status."""
    options = parse(arguments)
    if options.writer:
        print(json.dumps(write_operations(options.writer, options.callers[0], options.seconds)))
        return 0
    print("\n".join(describe_machine()))
    print("load average before: {:.1f} {:.1f} {:.1f}\n".format(*os.getloadavg()))
    figures: dict[str, Any] = {"load": os.getloadavg()}
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server(syncs=True))
        if options.requests:
            figures["served"] = measure_served(server, options)
            print(served_table(figures["served"]))
        if options.seconds:
            figures["written"] = measure_written(server, options)
            print(written_table(figures["written"]))
            print(better_from(figures["written"]))
    print("load average after: {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="of a server")
    parser.add_argument("--clients", type=int, default=8, help="of a server")
    parser.add_argument(
        "--requests", type=int, default=100, help="of a client; 0 leaves servers out"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--context", choices=CONTEXTS, default="medium")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4], help="that write")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 64], help="of a process")
    parser.add_argument("--seconds", type=float, default=4.0, help="of writing; 0 leaves it out")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--writer", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


@contextmanager
def states(server: PostgresServer, kind: str) -> Iterator[tuple[str, Path]]:
    """Yield the address of an empty state, and a folder."""
    with tempfile.TemporaryDirectory(prefix="steelyard-scale-") as home:
        url = f"sqlite:///{home}/state.sqlite" if kind == SQLITE else server.new_database()
        yield url, Path(home)


def new_account(url: str) -> tuple[str, str]:
    """Make an account with credit; return its id and its key's, and the key."""
    state = open_state(url)
    try:
        accounts = AccountService(state, accounts_enabled=True)
        account = accounts.create_account("benchmark").id
        accounts.add_credit(account, _CREDIT)
        created = accounts.create_key(account=account)
        return f"{account} {created.key.id}", created.secret
    finally:
        state.close()


# Servers.


def measure_served(server: PostgresServer, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure a server of each number of workers on each kind of state."""
    found = []
    for kind in KINDS:
        for n_workers in options.workers:
            with states(server, kind) as (url, home), serving(url, home, n_workers) as started:
                port, key, process = started
                serve_round(port, key, process, options, 0)  # warms up
                before = state_bytes(url)
                rounds = [
                    serve_round(port, key, process, options, turn + 1)
                    for turn in range(options.rounds)
                ]
                kept = state_bytes(url) - before
            names = rounds[0].keys()
            figures = {name: float(np.median([one[name] for one in rounds])) for name in names}
            figures["bytes"] = kept / (options.rounds * options.clients * options.requests)
            found.append({"state": kind, "workers": n_workers, **figures})
    return found


@contextmanager
def serving(url: str, home: Path, n_workers: int) -> Iterator[tuple[int, str, int]]:
    """Run ``steelyard serve``; yield its port, a key and the process."""
    _, key = new_account(url)
    environment = {
        **os.environ,
        "STEELYARD_STATE_URL": url,
        "STEELYARD_ENGINE": _MODEL,
        "STEELYARD_ACCOUNTS": "on",
        "STEELYARD_JOBS": "off",
        "STEELYARD_PRICES": f"{_MODEL}={_PRICE}",
        "STEELYARD_LOG_LEVEL": "error",
        "STEELYARD_REQUESTS_PER_MINUTE": "10000000",
        "STEELYARD_TOKENS_PER_MINUTE": "0",
    }
    command = [sys.executable, "-m", "steelyard", "serve", "--port", "0", "--home", str(home)]
    process = subprocess.Popen(
        [*command, "--workers", str(n_workers)], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        address = home / "serve.json"
        started(process, address.exists, _START_S, last=lambda: "See its log above.")
        told = json.loads(address.read_text())
        yield int(told["url"].rpartition(":")[2]), key, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def state_bytes(url: str) -> int:
    """Return how large a state is, its indexes included and its log left out."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            size = text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        else:
            size = text("SELECT pg_database_size(current_database())")
        found: int = connection.execute(size).scalar_one()
    return found


def serve_round(
    port: int, key: str, process: int, options: argparse.Namespace, turn: int
) -> dict[str, float]:
    """Send each client's requests; return the figures of a round."""
    requests = [
        [
            paid_request(port, key, options.context, (turn * 1000 + client) * 10_000 + number)
            for number in range(options.requests)
        ]
        for client in range(options.clients)
    ]
    n_requests = options.clients * options.requests
    cpu_s, began = tree_cpu_s(process), time.perf_counter()
    times = run_clients(port, requests)
    seconds, cpu_s = time.perf_counter() - began, tree_cpu_s(process) - cpu_s
    return {
        "a_second": n_requests / seconds,
        "cpu_ms": cpu_s * 1e3 / n_requests,
        "p50_ms": float(np.percentile(times, 50)),
        "p95_ms": float(np.percentile(times, 95)),
    }


def paid_request(port: int, key: str, context: str, number: int) -> bytes:
    """Return a request that is stored, keyed and charged; its size and cost are the same each time."""
    words = make_context(CONTEXTS[context], number)
    body = json.loads(make_payload(context=words, n_questions=1, n_outcomes=4))
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": str(uuid.uuid4())}
    return make_request(port, json.dumps({**body, "store": True}).encode(), headers)


def tree_cpu_s(process: int) -> float:
    """Return the CPU time of a process and all below it that run."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            children.setdefault(int(fields[1]), []).append(pid)
            ticks[pid] = int(fields[11]) + int(fields[12])
    found, waiting = 0, [process]
    while waiting:
        pid = waiting.pop()
        found += ticks.get(pid, 0)
        waiting += children.get(pid, [])
    return found / _TICKS


def served_table(found: Sequence[dict[str, Any]]) -> str:
    """Return the figures of servers."""
    header = ["state", "workers", "requests a second", "CPU ms a request", "a second of a core"]
    header += ["p50 ms", "p95 ms", "bytes kept a request"]
    lines = [
        [
            one["state"],
            str(one["workers"]),
            f"{one['a_second']:.0f}",
            f"{one['cpu_ms']:.2f}",
            f"{1000 / one['cpu_ms']:.0f}",
            f"{one['p50_ms']:.0f}",
            f"{one['p95_ms']:.0f}",
            f"{one['bytes']:,.0f}",
        ]
        for one in found
    ]
    return text_table(header, lines)


# Writers.


def measure_written(server: PostgresServer, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure paid operations, without a server or an engine, by processes and callers."""
    found = []
    for kind in KINDS:
        for n_processes in options.processes:
            for n_callers in options.callers:
                with states(server, kind) as (url, _):
                    account, _ = new_account(url)
                    told = run_writers(f"{url} {account}", n_processes, n_callers, options.seconds)
                found.append(
                    {"state": kind, "processes": n_processes, "callers": n_callers, **told}
                )
    return found


def run_writers(place: str, n_processes: int, n_callers: int, seconds: float) -> dict[str, float]:
    """Run processes that write together; return their figures."""
    command = [sys.executable, __file__, "--writer", place]
    command += ["--callers", str(n_callers), "--seconds", str(seconds)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n_processes)
    ]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit("A process that writes failed; see its log above.")
    told = [json.loads(output) for output in outputs]
    times = [ms for one in told for ms in one["ms"]]
    n_operations = len(times)
    return {
        "a_second": sum(len(one["ms"]) / one["took_s"] for one in told),
        "commits_a_second": sum(one["commits"] / one["took_s"] for one in told),
        "cpu_ms": sum(one["cpu_s"] for one in told) * 1e3 / n_operations,
        "p50_ms": float(np.percentile(times, 50)),
        "p95_ms": float(np.percentile(times, 95)),
    }


def write_operations(
    place: str, n_callers: int, seconds: float, on_begin: Callable[[], object] = int
) -> dict[str, Any]:
    """Accept and settle keyed operations for some seconds, as a paid and stored request does."""
    url, account, key_id = place.split(" ")
    caller = Caller(account, key_id, "full", "::1")
    state = open_state(url)
    log = OperationLog(state, accounts_enabled=True)
    commits: list[None] = []
    event.listen(Engine, "commit", lambda _: commits.append(None))
    milliseconds: list[float] = []
    body = b'{"answer": "' + b"x" * 600 + b'"}'

    async def operate() -> None:
        began = time.perf_counter()
        write = Write(caller, "POST /v1/decide", uuid.uuid4().hex)
        accepted = await log.accept(write, model=_MODEL, reserved_nano=2_000)
        decision = StoredDecision(
            id=new_id("dec"),
            account_id=account,
            created_at=accepted.accepted_at,
            model=_MODEL,
            request=body,
            results=body,
        )
        also = partial(insert_decision, decision=decision)
        await log.settle(accepted, amount_nano=1_000, body=body, also=also)
        milliseconds.append((time.perf_counter() - began) * 1e3)

    async def call(give_up: float) -> None:
        while time.perf_counter() < give_up:
            await operate()

    async def call_together() -> tuple[float, float]:
        for _ in range(_WARM_UP):
            await operate()
        milliseconds.clear()
        commits.clear()
        on_begin()
        cpu_s, began = time.process_time(), time.perf_counter()
        await asyncio.gather(*(call(began + seconds) for _ in range(n_callers)))
        return time.process_time() - cpu_s, time.perf_counter() - began

    cpu_s, took_s = asyncio.run(call_together())
    n_commits = len(commits)
    state.close()
    return {"ms": milliseconds, "commits": n_commits, "cpu_s": cpu_s, "took_s": took_s}


def written_table(found: Sequence[dict[str, Any]]) -> str:
    """Return the figures of writers."""
    header = ["state", "processes", "callers", "operations a second", "commits a second"]
    header += ["CPU ms", "p50 ms", "p95 ms"]
    lines = [
        [
            one["state"],
            str(one["processes"]),
            str(one["callers"]),
            f"{one['a_second']:.0f}",
            f"{one['commits_a_second']:.0f}",
            f"{one['cpu_ms']:.2f}",
            f"{one['p50_ms']:.1f}",
            f"{one['p95_ms']:.1f}",
        ]
        for one in found
    ]
    return text_table(header, lines)


def better_from(found: Sequence[dict[str, Any]]) -> str:
    """Return from where on PostgreSQL writes more than SQLite."""
    rates = {(one["state"], one["processes"], one["callers"]): one["a_second"] for one in found}
    better = [
        f"{processes} processes of {callers} callers"
        for kind, processes, callers in rates
        if kind == POSTGRESQL
        and rates[kind, processes, callers] > rates[SQLITE, processes, callers]
    ]
    return f"PostgreSQL wrote more with: {', '.join(better) or 'none of these'}."


if __name__ == "__main__":
    sys.exit(main())
