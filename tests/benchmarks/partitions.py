"""Many rows over several processes: files with ``--workers``, an evaluation's partitions, Dask.

The same rows are answered by each number of processes in turn: rows a second by the clock and by CPU
time, and the memory of the largest process. With ``--only frame``: ``decide_frame`` in one process beside
Dask, by turns, with the start apart. See README.md.

Run: ``python tests/benchmarks/partitions.py [--rows 1000000] [--engine hashing] [--workers 1 2]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from ingest import chunks, generate
from machine import describe_machine
from quality_tables import text_table
from scale import tree_cpu_s

import steelyard
from steelyard.app.services import ApiServices
from steelyard.datasets.service import DatasetService
from steelyard.datasets.uploads import Upload
from steelyard.datasets.wire import Dataset
from steelyard.settings import child_environment
from support.models.evaluated import ENDED, get, open_home, submit, wait_for_evaluation
from support.servers.calling import upload_rows

#: Rows of the file that are written at a time.
_WRITTEN = 100_000
_ASKED = ("--question", "Which team should own this?", "--outcome", "billing=charges", "--outcome")
_ASKED += ("shipping=parcels", "--outcome", "returns", "--outcome", "other")
_OUTCOMES = {"billing": "charges", "shipping": "parcels", "returns": None, "other": None}
_DECISION = {"id": "team", "question": _ASKED[1], "outcomes": _OUTCOMES}
#: Seconds for which Dask's workers wait in a task, so that its own CPU time is seen.
_WAITS_S = 3.0
#: Partitions of a Dask worker, so that one that is ready sooner has more of them.
_PARTITIONS = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer the same rows with each number of processes, and print the cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--engine", default="hashing")
    parser.add_argument("--only", choices=("file", "evaluation", "frame"))
    parser.add_argument("--rounds", type=int, default=3, help="of --only frame")
    parser.add_argument("--characters", type=int, default=0, help="of a context; 0: one sentence")
    parser.add_argument("--frame", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--no-figures", action="store_true", help="stop evaluations once scored")
    options = parser.parse_args(arguments)
    if options.frame:
        print(json.dumps(answer_frame(options.frame, options.workers[0])))
        return 0
    print("\n".join(describe_machine()), flush=True)
    if options.only == "frame":
        compare_frames(options)
        return 0
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "evaluation":
            source = Path(folder, "rows.parquet")
            write_file(source, options.rows, options.characters)
            found += [answer_file(source, options, n) for n in options.workers]
        if options.only != "file":
            source = Path(folder, "rows.jsonl")
            generate(source, options.rows)
            found += [evaluate(Path(folder), source, options, n) for n in options.workers]
    columns = ["", "processes", "seconds", "rows/s", "rows/CPU s", "largest, MiB"]
    print(text_table(columns, found))
    return 0


def write_file(path: Path, n_rows: int, n_characters: int = 0) -> None:
    """Write rows of one short text, some at a time; with a length, each is repeated up to it."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, n_rows, _WRITTEN):
            numbers = range(first, min(n_rows, first + _WRITTEN))
            texts = [f"Order {number} is late, and I was charged twice." for number in numbers]
            if n_characters:
                texts = [(f"{each} " * n_characters)[:n_characters] for each in texts]
            writer.write_table(pa.table({"id": list(numbers), "text": texts}, schema=schema))


def answer_file(source: Path, options: argparse.Namespace, n_workers: int) -> list[str]:
    """Answer a file with so many processes beside the one that reads it."""
    target = source.with_name("scored.parquet")
    files = ("--input", str(source), "--output", str(target), "--overwrite", "--json")
    command = ("decide", *files, *_ASKED, "--engine", options.engine)
    began = perf_counter()
    process = _start(*command, "--workers", str(n_workers))
    usage = _ended(process)
    seconds = perf_counter() - began
    if pq.read_metadata(target).num_rows != options.rows:
        raise RuntimeError("Rows are missing.")
    return _line("decide --input", options.rows, n_workers, seconds, [usage])


def compare_frames(options: argparse.Namespace) -> None:
    """Answer a frame in one process and with each number of Dask workers, and print where Dask pays."""
    found: dict[int, list[dict[str, float]]] = {n: [] for n in (0, *options.workers)}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "rows.parquet")
        write_file(source, options.rows, options.characters)
        for _ in range(options.rounds):
            for n_workers, rounds in found.items():
                command = [sys.executable, __file__, "--frame", str(source)]
                environment = child_environment(
                    STEELYARD_ENGINE=options.engine, STEELYARD_THREADS="1"
                )
                told = subprocess.run(
                    [*command, "--workers", str(n_workers)],
                    env=environment,
                    stdout=subprocess.PIPE,
                    check=True,
                )
                rounds.append(json.loads(told.stdout))
                print(n_workers, json.dumps(rounds[-1]), flush=True)
    figures = {
        n_workers: {name: median(told[name] for told in rounds) for name in rounds[0]}
        for n_workers, rounds in found.items()
    }
    # Workers load their models beside each other, a core for each: a cluster starts as the smallest does.
    start_s = figures[min(options.workers)]["start_cpu_s"] - figures[0]["start_cpu_s"]
    header = ["", "start s", "start CPU s", "rows s", "rows/s", "CPU ms a row", "of Dask a second"]
    lines = [
        [
            f"Dask, {n_workers} workers" if n_workers else "one process",
            *(f"{told[name]:.1f}" for name in ("start_s", "start_cpu_s", "rows_s")),
            f"{options.rows / told['rows_s']:,.0f}",
            f"{row_ms(told, options.rows):.3f}",
            f"{told['upkeep'] * 1e3:.0f} ms",
            pays_from(start_s, figures[0], told, options.rows, n_workers) if n_workers else "",
        ]
        for n_workers, told in figures.items()
    ]
    print(text_table([*header, "pays from rows"], lines))


def row_ms(figures: dict[str, float], n_rows: int) -> float:
    """Return the CPU milliseconds of a row, without what Dask takes however much there is to do."""
    rows_cpu_s = figures["rows_cpu_s"] - figures["upkeep"] * figures["rows_s"]
    return rows_cpu_s * 1e3 / n_rows


def pays_from(
    start_s: float,
    alone: dict[str, float],
    spread: dict[str, float],
    n_rows: int,
    n_workers: int,
) -> str:
    """Return from how many rows so many workers, on a core each, end before one process does.

    All by CPU time. What Dask takes for itself a second is lost to the rows.
    """
    spread_ms = row_ms(spread, n_rows) / (n_workers - spread["upkeep"])
    saved_ms = row_ms(alone, n_rows) - spread_ms
    return f"{start_s * 1e3 / saved_ms:,.0f}" if saved_ms > 0 else "never"


def answer_frame(source: Path, n_workers: int) -> dict[str, float]:
    """Answer the rows of a file in this process, or with Dask workers; return start and rows apart.

    The start ends when each process has loaded its model and answered a row.
    """
    began, cpu_began = perf_counter(), tree_cpu_s(os.getpid())

    def passed() -> tuple[float, float]:
        return perf_counter() - began, tree_cpu_s(os.getpid()) - cpu_began

    frame, upkeep = pd.read_parquet(source), 0.0
    with ExitStack() as stack:
        if n_workers:
            import dask.dataframe as dd
            from distributed import Client, LocalCluster

            cluster = stack.enter_context(
                LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
            )
            client = stack.enter_context(Client(cluster))
            client.run(_load)
            started_s, started_cpu_s = passed()
            client.gather(client.map(sleep, [_WAITS_S] * n_workers, pure=False))
            waited_s, waited_cpu_s = passed()
            upkeep = (waited_cpu_s - started_cpu_s) / (waited_s - started_s)
            frame = dd.from_pandas(frame, npartitions=_PARTITIONS * n_workers, sort=False)
        else:
            _load()
            started_s, started_cpu_s = passed()
        ready_s, ready_cpu_s = passed()
        scored = steelyard.decide_frame(frame, [_DECISION], progress=False)
        if n_workers:
            scored = scored.compute()
        ended_s, ended_cpu_s = passed()
    if len(scored) != len(frame) or scored["team.top"].isna().any():
        raise RuntimeError("Rows are missing.")
    return {
        "start_s": started_s,
        "start_cpu_s": started_cpu_s,
        "rows_s": ended_s - ready_s,
        "rows_cpu_s": ended_cpu_s - ready_cpu_s,
        "upkeep": upkeep,
    }


def _load() -> None:
    """Load the model of a process."""
    rows = pd.DataFrame({"text": ["Where is my parcel?"]})
    steelyard.decide_frame(rows, [_DECISION], progress=False)


def evaluate(folder: Path, source: Path, options: argparse.Namespace, n_workers: int) -> list[str]:
    """Evaluate the same rows in a new home with so many ``steelyard worker``."""
    home = folder / f"home-{n_workers}"
    given = {"engine": options.engine, "dataset_rows": options.rows}
    with open_home(home, **given) as services:
        dataset = _store(services, source)
        workers = [
            _start("worker", "--home", str(home), "--engine", options.engine, "--threads", "1")
            for _ in range(n_workers)
        ]
        sleep(10)  # until each has its model
        (one,) = submit(services, dataset.id, [options.engine]).data
        began = perf_counter()
        while (seen := get(services, one.id)).completed_rows < seen.evaluation_rows:
            if seen.status in ENDED:
                raise RuntimeError(f"The evaluation ended as {seen}.")
            sleep(0.2)
        seconds = perf_counter() - began
        if not options.no_figures:
            seen = wait_for_evaluation(services, one.id, timeout_s=3600)
            print(
                f"scored in {seconds:.0f} s, measured in {perf_counter() - began - seconds:.0f} s"
            )
        for worker in workers:
            worker.terminate()
        usages = [_ended(worker) for worker in workers]
    if not options.no_figures and (seen.metrics is None or seen.metrics.n != 2 * options.rows):
        raise RuntimeError(f"The evaluation ended as {seen}.")
    return _line("evaluation", options.rows, n_workers, seconds, usages)


def _store(services: ApiServices, source: Path) -> Dataset:
    """Make a dataset of a file, all of it for evaluation."""

    async def create() -> bytes:
        with Upload("multipart", {"name": "many"}) as upload:
            file = upload.add_file("evaluation")
            for chunk in chunks(source):
                file.write(chunk)
            return (await upload_rows(services.get(DatasetService), upload)).body

    return msgspec.json.decode(asyncio.run(create()), type=Dataset)


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "steelyard", *arguments],
        stdout=subprocess.DEVNULL,
        env=child_environment(),
    )


def _ended(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """Wait for a process, and return the resources of it and its children."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, -15):
        raise RuntimeError(f"A process ended with status {process.returncode}.")
    return usage


def _line(name: str, rows: int, n: int, seconds: float, usages: Sequence[Any]) -> list[str]:
    cpu = sum(one.ru_utime + one.ru_stime for one in usages)
    largest = max(one.ru_maxrss for one in usages) / 1024
    told = {"seconds": seconds, "cpu": cpu, "mib": largest}
    print(name, n, json.dumps(told), flush=True)
    figures = (f"{seconds:.0f}", f"{rows / seconds:,.0f}", f"{rows / cpu:,.0f}", f"{largest:.0f}")
    return [name, str(n), *figures]


if __name__ == "__main__":
    sys.exit(main())
