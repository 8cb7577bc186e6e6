"""Write rates of hosts that share a PostgreSQL database, by their number and the length of a trip to it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median

import psycopg
from machine import describe_machine
from quality_tables import text_table
from scale import new_account, run_writers, write_operations
from sqlalchemy import make_url

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

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
