"""Many rows over several processes: ``decide --input --workers`` and an evaluation's partitions.

The same rows are answered by each number of processes in turn: rows a second by the clock and by CPU
time, and the memory of the largest process. See README.md.

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
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from ingest import chunks, generate
from machine import describe_machine
from quality_tables import text_table

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer the same rows with each number of processes, and print the cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--engine", default="hashing")
    parser.add_argument("--only", choices=("file", "evaluation"))
    parser.add_argument("--no-figures", action="store_true", help="stop evaluations once scored")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()), flush=True)
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "evaluation":
            source = Path(folder, "rows.parquet")
            write_file(source, options.rows)
            found += [answer_file(source, options, n) for n in options.workers]
        if options.only != "file":
            source = Path(folder, "rows.jsonl")
            generate(source, options.rows)
            found += [evaluate(Path(folder), source, options, n) for n in options.workers]
    columns = ["", "processes", "seconds", "rows/s", "rows/CPU s", "largest, MiB"]
    print(text_table(columns, found))
    return 0


def write_file(path: Path, n_rows: int) -> None:
    """Write rows of one short text, some at a time."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, n_rows, _WRITTEN):
            numbers = range(first, min(n_rows, first + _WRITTEN))
            texts = [f"Order {number} is late, and I was charged twice." for number in numbers]
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
