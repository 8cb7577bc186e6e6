"""The cost of a large log of decisions to a decision, and to a page of it; see README.md beside this file."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from machine import describe_machine
from quality_tables import text_table
from sqlalchemy import insert
from workloads import make_context, make_payload

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from steelyard.app.bootstrap import open_service
from steelyard.app.rooms import names_of_decisions
from steelyard.app.services import ApiServices
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.decision_log.archive.files import ArchiveFiles
from steelyard.decision_log.archive.run import ArchiveRuns
from steelyard.decision_log.archive.service import Archiving
from steelyard.decision_log.service import DecisionLog
from steelyard.decision_log.tables import decisions
from steelyard.decision_log.wire import DecisionLogQuery, DecisionSeriesQuery
from steelyard.settings import read_settings
from steelyard.storage import open_state
from steelyard.storage.frame_store import open_store
from support.servers.calling import send

EMPTY, STATE, ARCHIVE = "empty", "in the state", "in files"
LOGS = (EMPTY, STATE, ARCHIVE)
_ME = Caller(LOCAL_ACCOUNT, None, "full", "benchmark")
_DAY_S = 86_400.0
#: Days that the answers of a log are spread over, all of them closed, and answers put in at a time.
_DAYS, _AT_ONCE = 25, 20_000
_RETENTION_DAYS = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected measurements; return the exit status."""
    options = parse(arguments)
    print("\n".join(describe_machine()))
    print("load average before: {:.1f} {:.1f} {:.1f}\n".format(*os.getloadavg()))
    with tempfile.TemporaryDirectory(prefix="steelyard-archive-", dir=options.folder) as folder:
        homes = {name: Path(folder, str(place)) for place, name in enumerate(LOGS)}
        figures: dict[str, Any] = {"rows": options.rows, "made": make_homes(homes, options)}
        print(made_table(figures["made"], options.rows))
        with ExitStack() as stack:
            services = {
                name: stack.enter_context(open_service(settings_of(home)))
                for name, home in homes.items()
            }
            figures["decide"] = asyncio.run(measure_decide(services, options))
            print(decide_table(figures["decide"]))
            figures["read"] = asyncio.run(measure_reads(services, options))
            print(read_table(figures["read"]))
    print("load average after: {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large log")
    parser.add_argument("--characters", type=int, default=400, help="of a context")
    parser.add_argument("--decides", type=int, default=1_000, help="of each log")
    parser.add_argument("--reads", type=int, default=200, help="of each kind and log")
    parser.add_argument("--folder", type=Path, help="where the states are made")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args(arguments)


def settings_of(home: Path) -> Any:
    """Return the settings of a server that moves nothing by itself."""
    return read_settings(
        {"home": home, "engine": "hashing", "jobs": "off", "retention_days": _RETENTION_DAYS},
        environ={},
    )


# Logs.


def make_homes(homes: dict[str, Path], options: argparse.Namespace) -> dict[str, float]:
    """Fill a state, copy it, and move the copy's answers to files; return how long that took."""
    began = time.perf_counter()
    path = homes[STATE] / "state.sqlite"
    with closing(open_state(f"sqlite:///{path}")) as state:
        rows = made_rows(options.rows, options.characters)
        while some := list(islice(rows, _AT_ONCE)):
            state.write_now(
                lambda connection, some=some: connection.execute(insert(decisions), some)
            )
    filled_s = time.perf_counter() - began
    homes[ARCHIVE].mkdir()
    copy = homes[ARCHIVE] / "state.sqlite"
    shutil.copyfile(path, copy)
    began = time.perf_counter()
    files = ArchiveFiles(open_store(homes[ARCHIVE] / "frames", "decision_log"))
    with closing(open_state(f"sqlite:///{copy}")) as state:
        Archiving(state, after_days=1, retention_days=_RETENTION_DAYS).tick()
        runs = ArchiveRuns(state, files, names_of_decisions(), lambda: None)
        while jobs := state.read_now(runs.pending):
            job = dataclasses.replace(jobs[0], runner=state.instance)
            state.write_now(lambda connection, job=job: runs.claim(connection, job))
            run = runs.open(job)
            while run.advance():
                pass
    return {
        "fill_s": filled_s,
        "move_s": time.perf_counter() - began,
        "state_bytes": path.stat().st_size,
        "file_bytes": sum(size for _, size in files.store.contents().values()),
    }


def made_rows(n: int, n_characters: int) -> Iterator[dict[str, Any]]:
    """Yield answers of closed days, the oldest first, of contexts that are words."""
    rng = random.Random(7)
    words = make_context(100_000, 0).split()
    names = ["billing", "delivery", "refund", "something else"]
    asked = [{"id": "team", "kind": "single", "question": "Who is to answer?"}]
    today = time.time() // _DAY_S * _DAY_S
    start = today - (_DAYS + 1) * _DAY_S
    for number in range(n):
        at = start + number * _DAYS * _DAY_S / n
        p = 0.25 + 0.75 * rng.random()
        top = rng.choice(names)
        others = {name: (1 - p) / 3 for name in names if name != top}
        team = {
            "kind": "single",
            "probabilities": {top: p, **others},
            "top": top,
            "p_top": p,
            "action": top,
        }
        text = " ".join(rng.choices(words, k=n_characters // 5))[:n_characters]
        yield {
            "id": f"dec_{int(at * 1000):012x}{rng.getrandbits(56):014x}",
            "account_id": LOCAL_ACCOUNT,
            "created_at": at,
            "model": "router" if rng.random() < 0.9 else "rare",
            "version": None,
            "request": msgspec.json.encode({"context": text, "decisions": asked}),
            "results": msgspec.json.encode({"team": team}),
            "outcome_names": msgspec.json.encode({"team": names}),
            "metadata": None,
            "total_ms": 5 + 10 * rng.random(),
            "key_id": f"key_{rng.randrange(4)}",
        }


def made_table(made: dict[str, float], n: int) -> str:
    """Return how long the logs took to make, and the bytes of a row."""
    header = ["answers", "filled s", "moved s", "moved a second", "bytes in the state", "in files"]
    line = [
        f"{n:,}",
        f"{made['fill_s']:.0f}",
        f"{made['move_s']:.0f}",
        f"{n / made['move_s']:,.0f}",
        f"{made['state_bytes'] / n:,.0f}",
        f"{made['file_bytes'] / n:,.0f}",
    ]
    return text_table(header, [line])


# Decisions.


async def measure_decide(
    services: dict[str, ApiServices], options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Measure decisions that are stored: each log has one in its turn, so that all meet the same load."""
    times: dict[str, list[float]] = {name: [] for name in LOGS}
    cpu: dict[str, list[float]] = {name: [] for name in LOGS}
    order = random.Random(3)
    for number in range(-20, options.decides):
        context = make_context(options.characters, number + 20)
        body = make_payload(context=context, n_questions=1, n_outcomes=4)
        for name in order.sample(LOGS, len(LOGS)):
            began, cpu_s = time.perf_counter(), time.process_time()
            await send("POST /v1/decide", services[name], body, caller=_ME)
            if number >= 0:
                times[name].append(time.perf_counter() - began)
                cpu[name].append(time.process_time() - cpu_s)
    return {
        name: {**percentiles(times[name]), "cpu_ms": float(np.median(cpu[name])) * 1e3}
        for name in LOGS
    }


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return milliseconds."""
    p50, p95 = np.percentile(seconds, [50, 95]) * 1e3
    return {"p50_ms": float(p50), "p95_ms": float(p95)}


def decide_table(found: dict[str, dict[str, float]]) -> str:
    """Return the time of a decision beside each log."""
    lines = [
        [
            name,
            f"{one['p50_ms']:.2f}",
            f"{one['p95_ms']:.2f}",
            f"{one['p95_ms'] / found[EMPTY]['p95_ms']:.2f}",
            f"{one['cpu_ms']:.2f}",
        ]
        for name, one in found.items()
    ]
    return text_table(["log", "decide p50 ms", "p95 ms", "times the empty one", "CPU ms"], lines)


# Reads.


async def measure_reads(
    services: dict[str, ApiServices], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measure pages at places all over the log, one answer, and figures of a day."""
    places = await some_ids(services[STATE], options.reads)
    found = []
    for what, ask in _READS.items():
        for name in (STATE, ARCHIVE):
            times, cpu = [], []
            for id_, at in places:
                began, cpu_s = time.perf_counter(), time.process_time()
                await ask(services[name], id_, at)
                times.append(time.perf_counter() - began)
                cpu.append(time.process_time() - cpu_s)
            told = {**percentiles(times), "cpu_ms": float(np.median(cpu)) * 1e3}
            found.append({"read": what, "log": name, **told})
    return found


async def some_ids(services: ApiServices, n: int) -> list[tuple[str, float]]:
    """Return id and time of answers at random times of the log."""
    rng = random.Random(5)
    today = time.time() // _DAY_S * _DAY_S
    found = []
    for _ in range(n):
        until = today - (1 + rng.random() * (_DAYS - 1)) * _DAY_S
        page = await services.get(DecisionLog).page(_ME, DecisionLogQuery(until=until, limit=1))
        found += [(one.id, one.created_at) for one in page.data]
    return found


_READS: dict[str, Callable[[ApiServices, str, float], Awaitable[object]]] = {
    "a page of 50": lambda services, id_, _: services.get(DecisionLog).page(
        _ME, DecisionLogQuery(cursor=id_, limit=50)
    ),
    "a page of 200": lambda services, id_, _: services.get(DecisionLog).page(
        _ME, DecisionLogQuery(cursor=id_, limit=200)
    ),
    "50 of a rare model": lambda services, id_, _: services.get(DecisionLog).page(
        _ME, DecisionLogQuery(cursor=id_, model="rare", limit=50)
    ),
    "50 that are sure": lambda services, id_, _: services.get(DecisionLog).page(
        _ME, DecisionLogQuery(cursor=id_, p_from=0.9, limit=50)
    ),
    "one answer": lambda services, id_, _: services.get(DecisionLog).get(_ME, id_),
    "figures of an hour": lambda services, _, at: services.get(DecisionLog).series(
        _ME, DecisionSeriesQuery(since=at - 3600, until=at, bucket_s=600)
    ),
}


def read_table(found: Sequence[dict[str, Any]]) -> str:
    """Return the time of reads in each log."""
    lines = [
        [one["read"], one["log"], *(f"{one[name]:.1f}" for name in ("p50_ms", "p95_ms", "cpu_ms"))]
        for one in found
    ]
    return text_table(["read", "log", "p50 ms", "p95 ms", "CPU ms"], lines)


if __name__ == "__main__":
    sys.exit(main())
