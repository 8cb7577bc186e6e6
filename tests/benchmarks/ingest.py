"""How fast rows of a dataset are read, checked and stored, and in how much memory.

Each figure is of a process of its own on one core, in CPU seconds, so that neighbours on the machine
do little to it. Beside ours: pydantic, which checks the same shape and less (no outcomes, no sums, no
repeated keys, no hashes, nothing stored), where it is installed; and Polars' reader of JSON Lines,
which checks nothing but that the lines are JSON of one schema.

Run: ``python tests/benchmarks/ingest.py [--rows 100000 1000000]``
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

CHUNK_BYTES = 1 << 16
N_PAGES = 41
#: What the first decision of row n has as its label: the one at n modulo their number.
TEAMS = ("billing", "shipping", "other")


def generate(path: Path, n_rows: int) -> None:
    """Write rows as people send them: a short text, and two decisions that all rows ask."""
    decisions = [
        {
            "id": "team",
            "question": "Which team should own this ticket?",
            "outcomes": {
                "billing": "charges, refunds and invoices",
                "shipping": "where a parcel is, and what arrived broken",
                "other": None,
            },
        },
        {"id": "refund", "kind": "binary", "question": "Does the customer ask for money back?"},
    ]
    with path.open("w", encoding="utf-8") as file:
        for number in range(n_rows):
            row = {
                "context": f"My card was charged twice for order {number}. Please send one payment "
                "back today, I have been waiting since Monday.",
                "decisions": decisions,
                "targets": {
                    "team": {TEAMS[number % len(TEAMS)]: 1.0},
                    "refund": ("yes", "no")[number % 2],
                },
            }
            file.write(json.dumps(row) + "\n")


def chunks(path: Path) -> Iterator[bytes]:
    """Return a file in pieces, as a server gets an upload."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def run_validation(path: Path) -> dict[str, float]:
    from steelyard.datasets.ingest import RowReader

    reader = RowReader()
    began = time.process_time()
    for _ in reader.read_ndjson(chunks(path)):
        pass
    return {"rows": reader.n_rows, "seconds": time.process_time() - began}


def run_ingest(path: Path) -> dict[str, float]:
    """Read, check, hash, split and store every row; then read pages of 500 at many places."""
    from steelyard.datasets.frames.pages import RowStore
    from steelyard.datasets.frames.writing import VersionWriter
    from steelyard.datasets.ingest import RowReader
    from steelyard.datasets.versions import Manifest
    from steelyard.storage.frame_store import open_store

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        store = open_store(folder)
        reader = RowReader()
        began = time.process_time()
        with VersionWriter(store, "ds_benchmark") as writer:
            for rows in reader.read_ndjson(chunks(path)):
                writer.add(rows)
            manifest = writer.finish()
        seconds = time.process_time() - began
        assert isinstance(manifest, Manifest)
        peak = peak_mib()
        stored = RowStore(store)
        stored.page(manifest, offset=manifest.rows // 2, limit=500)
        walls = []
        for place in range(N_PAGES):
            offset = (manifest.rows - 500) * place // (N_PAGES - 1)
            wall = time.perf_counter()
            assert len(stored.page(manifest, offset=offset, limit=500)) == 500
            walls.append((time.perf_counter() - wall) * 1000)
    walls.sort()
    return {
        "rows": manifest.rows,
        "seconds": seconds,
        "peak_mib": peak,
        "stored_mib": sum(part.bytes for part in manifest.parts) / 2**20,
        "page_ms": walls[N_PAGES // 2],
        "worst_page_ms": walls[-1],
    }


def run_pydantic(path: Path) -> dict[str, float]:
    """Check the shape of every row with pydantic."""
    from pydantic import BaseModel, ConfigDict

    class Decision(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        id: str
        question: str | dict[str, Any] | list[Any]
        kind: str | None = None
        outcomes: Any = None
        rubric: list[Any] | None = None

    class Row(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        context: str | dict[str, Any] | list[Any]
        decisions: list[Decision]
        targets: dict[str, str | dict[str, float]] | None = None
        rewards: dict[str, dict[str, float]] | None = None

    n_rows = 0
    began = time.process_time()
    with path.open("rb") as file:
        for line in file:
            Row.model_validate_json(line)
            n_rows += 1
    return {"rows": n_rows, "seconds": time.process_time() - began}


def run_polars(path: Path) -> dict[str, float]:
    """Read every row with Polars; targets of two forms are too much for it, so they are texts."""
    import polars as pl

    schema = {"context": pl.String, "decisions": pl.String, "targets": pl.String}
    began = time.process_time()
    frame = pl.read_ndjson(path, schema=schema)
    return {"rows": frame.height, "seconds": time.process_time() - began}


WORK: dict[str, Callable[[Path], dict[str, float]]] = {
    "steelyard, checked": run_validation,
    "steelyard, checked and stored": run_ingest,
    "pydantic": run_pydantic,
    "polars.read_ndjson": run_polars,
}


def peak_mib() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, path: Path) -> dict[str, float]:
    """Run one of ``WORK`` in a process of its own, on one core."""
    server = Path(__file__).resolve().parents[2] / "server"
    environment = {
        **os.environ,
        "PYTHONPATH": str(server),
        "POLARS_MAX_THREADS": "1",
        "ARROW_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, __file__, "--one", name, "--file", str(path)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--one", choices=list(WORK), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        result = WORK[options.one](options.file)
        print(json.dumps({"peak_mib": peak_mib(), **result}))
        return 0
    from machine import describe_machine

    print("\n".join(describe_machine()))
    for n_rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            generate(path, n_rows)
            print(f"\n{n_rows} rows, {path.stat().st_size / 2**20:.0f} MiB")
            for name in WORK:
                if name == "pydantic" and importlib.util.find_spec("pydantic") is None:
                    continue
                told = measure(name, path)
                line = f"{name:32} {told['rows'] / told['seconds']:>10,.0f} rows/s"
                line += f"{told['peak_mib']:>8.0f} MiB peak"
                if "page_ms" in told:
                    line += f", {told['stored_mib']:.0f} MiB stored, a page of 500:"
                    line += f" {told['page_ms']:.1f} ms, at worst {told['worst_page_ms']:.1f} ms"
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
