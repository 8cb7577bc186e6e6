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
from contextlib import ExitStack, contextmanager
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

import steelyard
from faults.processes import ServeProcess
from steelyard.errors import DatasetChangedError
from steelyard.serving.base import load_named_model
from support.datasets.dataset_rows import make_rows
from support.servers.forwarder import Forwarder, forwarded
from support.servers.postgres_server import PostgresServer, postgres_server

#: Seconds for which statements are counted, and trips that are timed.
_COUNTED_S, _TIMED = 0.5, 100
_APPENDERS = 8


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
    parser.add_argument("--appends", type=int, default=30, help="of seven rows, of --served")
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


@contextmanager
def serving_hosts(
    server: PostgresServer, options: argparse.Namespace
) -> Iterator[tuple[list[ServeProcess], str]]:
    """Run servers that share a state and rows; yield them and a key. Each has a core of its own."""
    url, cores = server.new_state(), sorted(os.sched_getaffinity(0))
    _, key = new_account(url)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = {
            "STEELYARD_STATE_URL": url,
            "STEELYARD_FRAMES_URL": str(folder / "frames"),
            "STEELYARD_ENGINE": options.engine,
            "STEELYARD_THREADS": "1",
            "STEELYARD_ACCOUNTS": "on",
            "STEELYARD_JOBS": "off",
            "STEELYARD_PRICES": f"{load_named_model(options.engine, 1).scorer.name}=1000",
            "STEELYARD_LOG_LEVEL": "error",
        }
        hosts = [ServeProcess(folder / f"{n}", **settings) for n in range(max(options.hosts))]
        for number, host in enumerate(hosts):
            stack.callback(host.end)
            host.launch("taskset", "-c", str(cores[number % len(cores)]))
            host.wait_until_ready()
        yield hosts, key


def compare_served(server: PostgresServer, options: argparse.Namespace) -> str:
    """Ask one server, then more at once, by turns, and append rows by them; return the tables.

    PostgreSQL and the callers take time of any core.
    """
    n_cores, n_callers, numbers = len(os.sched_getaffinity(0)), max(options.callers), counter()
    rounds: dict[int, list[tuple[float, float, float]]] = {n_hosts: [] for n_hosts in options.hosts}
    with serving_hosts(server, options) as (hosts, key):
        ask_hosts(hosts, key, numbers, n_callers, 2)  # warms up
        for _ in range(options.rounds):
            for n_hosts, figures in rounds.items():
                figures.append(
                    ask_hosts(hosts[:n_hosts], key, numbers, n_callers, options.requests)
                )
        appended = [append_rows(hosts[:n_hosts], key, options.appends) for n_hosts in options.hosts]
    header = ["hosts", "callers of each", "decides a second", "CPU ms of a host a decide"]
    header += ["of all else", "decides a second by CPU time"]
    lines = []
    for n_hosts, told in rounds.items():
        a_second, host_ms, else_ms = (median(values) for values in zip(*told, strict=True))
        # A core for each host, and all else on whichever has time.
        by_cpu = 1e3 * min(n_hosts / host_ms, n_cores / (host_ms + else_ms))
        figures = [f"{value:.1f}" for value in (a_second, host_ms, else_ms, by_cpu)]
        lines.append([str(n_hosts), str(n_callers), *figures])
    of_appends = ["hosts", "appends", "refused", "seconds", "CPU ms of the hosts an append"]
    return f"{text_table(of_appends, appended)}\n{text_table(header, lines)}"


def append_rows(hosts: Sequence[ServeProcess], key: str, n_appends: int) -> list[str]:
    """Append seven rows as often as said by eight callers, of each host in turn; return the line."""
    with ExitStack() as stack:
        clients = [stack.enter_context(steelyard.connect(host.url, api_key=key)) for host in hosts]
        dataset = clients[0].datasets.create(f"of-{len(hosts)}", make_rows(20))

        def append(number: int) -> bool:
            try:
                rows = make_rows(7, 20 + 7 * number)
                clients[number % len(clients)].datasets.add_rows(dataset.id, rows)
            except DatasetChangedError:
                return False
            return True

        cpu_s, began = sum(tree_cpu_s(host.pid) for host in hosts), time.perf_counter()
        with ThreadPoolExecutor(_APPENDERS) as pool:
            n_appended = sum(pool.map(append, range(n_appends)))
        took_s = time.perf_counter() - began
        cpu_s = sum(tree_cpu_s(host.pid) for host in hosts) - cpu_s
        if clients[-1].datasets.get(dataset.id).rows != 20 + 7 * n_appended:
            raise RuntimeError("Rows are missing.")
    figures = [f"{took_s:.1f}", f"{cpu_s * 1e3 / n_appends:.0f}"]
    return [str(len(hosts)), str(n_appends), str(n_appends - n_appended), *figures]


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
