"""Rates of hosts that share a PostgreSQL database, by their number and the length of a trip to it.

Without ``--served``, of the state alone; with it, of servers with a core each that answer long contexts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count as counter
from itertools import product
from pathlib import Path
from statistics import median

import psycopg
from machine import describe_machine
from quality_tables import text_table
from scale import new_account, paid_request, run_writers, tree_cpu_s, write_operations
from service_load import run_clients
from sqlalchemy import make_url

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.processes import ServeProcess
from steelyard.serving.base import load_named_model
from support.servers.forwarder import Forwarder, forwarded
from support.servers.postgres_server import PostgresServer, postgres_server

#: Seconds for which statements are counted, and trips that are timed.
_COUNTED_S, _TIMED = 0.5, 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    options = parse(arguments)
    print("\n".join(describe_machine()))
    header = ["ms a trip", "hosts", "callers of each", "statements a decide", "trips a decide"]
    header += ["decides a second", "CPU ms of a host a decide", "p50 ms", "p95 ms"]
    with postgres_server(syncs=True) as server:
        if options.served:
            print(compare_served(server, options))
            return 0
        lines = [
            measure(server, *setting, options.seconds)
            for setting in product(options.trips, options.hosts, options.callers)
        ]
    print(text_table(header, lines))
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--trips", type=float, nargs="+", default=[0, 0.69, 2.5], help="milliseconds of each"
    )
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 16], help="of a host")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--served", action="store_true", help="answer 1,800 characters by servers")
    parser.add_argument("--engine", default="onnxruntime-int8", help="of --served")
    parser.add_argument("--requests", type=int, default=15, help="of each caller of --served")
    parser.add_argument("--rounds", type=int, default=3, help="of --served")
    return parser.parse_args(arguments)


def measure(
    server: PostgresServer, trip_ms: float, n_hosts: int, n_callers: int, seconds: float
) -> list[str]:
    """Accept and settle paid, stored decides from hosts; return their line of the table."""
    with forwarded(server.new_state()) as (forwarder, url):
        account, _ = new_account(url)
        forwarder.delay_s = trip_ms / 2e3
        found_ms = time_trip(url)
        n_statements, n_trips = count(forwarder, f"{url} {account}", n_callers)
        found = run_writers(f"{url} {account}", n_hosts, n_callers, seconds)
    figures = [f"{found_ms:.2f}", str(n_hosts), str(n_callers)]
    figures += [f"{n_statements:.1f}", f"{n_trips:.1f}", f"{found['a_second']:.0f}"]
    return figures + [f"{found[name]:.1f}" for name in ("cpu_ms", "p50_ms", "p95_ms")]


def compare_served(server: PostgresServer, options: argparse.Namespace) -> str:
    """Ask one server, then more at once, by turns; return the table.

    Each server and its engine have one core. PostgreSQL and the callers take time of any core.
    """
    cores, n_callers = sorted(os.sched_getaffinity(0)), max(options.callers)
    url, numbers = server.new_state(), counter()
    _, key = new_account(url)
    settings = {
        "STEELYARD_STATE_URL": url,
        "STEELYARD_ENGINE": options.engine,
        "STEELYARD_THREADS": "1",
        "STEELYARD_ACCOUNTS": "on",
        "STEELYARD_JOBS": "off",
        "STEELYARD_PRICES": f"{load_named_model(options.engine, 1).scorer.name}=1000",
        "STEELYARD_LOG_LEVEL": "error",
    }
    rounds: dict[int, list[dict[str, float]]] = {n_hosts: [] for n_hosts in options.hosts}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hosts = [ServeProcess(folder / f"{n}", **settings) for n in range(max(options.hosts))]
        for number, host in enumerate(hosts):
            stack.callback(host.end)
            host.launch("taskset", "-c", str(cores[number % len(cores)]))
            host.wait_until_ready()
        ask_hosts(hosts, key, numbers, n_callers, 2)  # warms up
        for _ in range(options.rounds):
            for n_hosts, figures in rounds.items():
                figures.append(
                    ask_hosts(hosts[:n_hosts], key, numbers, n_callers, options.requests)
                )
    header = ["hosts", "callers of each", "decides a second", "CPU ms of a host a decide"]
    header += ["of all else", "decides a second by CPU time"]
    lines = []
    for n_hosts, told in rounds.items():
        a_second, host_ms, else_ms = (median(values) for values in zip(*told, strict=True))
        # A core for each host, and all else on whichever has time.
        by_cpu = 1e3 * min(n_hosts / host_ms, len(cores) / (host_ms + else_ms))
        figures = [f"{value:.1f}" for value in (a_second, host_ms, else_ms, by_cpu)]
        lines.append([str(n_hosts), str(n_callers), *figures])
    return text_table(header, lines)


def ask_hosts(
    hosts: Sequence[ServeProcess], key: str, numbers: Iterator[int], n_callers: int, n_requests: int
) -> tuple[float, float, float]:
    """Ask all hosts at once for paid, stored answers, each to a context of its own.

    Return the decides a second, and the CPU milliseconds of a decide: of its host, and of all else.
    """

    requests = [
        [
            [paid_request(host.port, key, "medium", next(numbers)) for _ in range(n_requests)]
            for _ in range(n_callers)
        ]
        for host in hosts
    ]

    def ask(host: ServeProcess, of_callers: Sequence[Sequence[bytes]]) -> float:
        began = time.perf_counter()
        run_clients(host.port, of_callers)
        return n_callers * n_requests / (time.perf_counter() - began)

    hosts_s, all_s = sum(tree_cpu_s(host.pid) for host in hosts), tree_cpu_s(os.getpid())
    with ThreadPoolExecutor(len(hosts)) as pool:
        a_second = sum(pool.map(ask, hosts, requests))
    hosts_s = sum(tree_cpu_s(host.pid) for host in hosts) - hosts_s
    else_s = tree_cpu_s(os.getpid()) - all_s - hosts_s
    n_decides = len(hosts) * n_callers * n_requests
    return a_second, hosts_s * 1e3 / n_decides, else_s * 1e3 / n_decides


def count(forwarder: Forwarder, place: str, n_callers: int) -> tuple[float, float]:
    """Return the statements and the trips of a decide from one host."""
    before: list[int] = []

    def begin() -> None:
        before[:] = forwarder.n_statements, forwarder.n_trips

    found = write_operations(place, n_callers, _COUNTED_S, begin)
    n_decides = len(found["ms"])
    return (
        (forwarder.n_statements - before[0]) / n_decides,
        (forwarder.n_trips - before[1]) / n_decides,
    )


def time_trip(url: str) -> float:
    """Return the milliseconds of a trip, the database's own time for it included."""
    address = make_url(url).set(drivername="postgresql").render_as_string()
    times = []
    with psycopg.connect(address, autocommit=True) as connection:
        for _ in range(_TIMED):
            began = time.perf_counter()
            connection.execute("SELECT 1")
            times.append(time.perf_counter() - began)
    return median(times) * 1e3


if __name__ == "__main__":
    sys.exit(main())
