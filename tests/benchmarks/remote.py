"""The same passes in this process and in a Triton server: the cost of the way, and vectors on it.

A fine-tune's heads read the vectors of a pass. They run in the service, which gets the vectors with
the logits in the answer of the same pass; in the server they would save the way of the vectors, and
no round trip. This measures both ways.

Run it as a script, on a quiet machine; ``README.md`` beside it says how, and explains the columns.
It builds Triton's environment where there is none, and skips, saying so, where that cannot be.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from engines import Measured, Run, measure, record
from machine import describe_machine
from quality_tables import text_table
from workloads import CONTEXTS

from models import load_model
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.remote.triton_address import parse_address
from steelyard.scoring.remote.triton_engine import TritonEngine
from steelyard.triton.environment import Environment, build_environment
from steelyard.triton.host import TritonHost
from steelyard.triton.repository import ExportOptions, base_source, write_model

HERE, THERE, LOGITS = "in process", "triton", "triton, logits alone"
_VECTORS = "marker_vectors"
_PASS_S = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    try:
        environment = build_environment(options.environment, lambda line: print(line, flush=True))
    except (EngineUnavailableError, OSError) as error:
        print(f"skipped: Triton cannot run here: {error}")
        return 0
    print("\n".join(describe_machine()), flush=True)
    found = measure_all(environment, options)
    print(table(found))
    if options.json:
        figures = {"machine": describe_machine(), "passes": [asdict(one) for one in found]}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    kept = platformdirs.user_cache_path("steelyard", appauthor=False) / "triton"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--environment", type=Path, default=kept, help="where it is built and kept")
    parser.add_argument("--threads", type=int, default=1, help="threads of a pass, on both sides")
    parser.add_argument("--contexts", nargs="+", choices=CONTEXTS, default=list(CONTEXTS))
    parser.add_argument("--requests", type=int, default=6, help="requests of each size")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every round's figures to this file")
    return parser.parse_args(arguments)


def measure_all(environment: Environment, options: argparse.Namespace) -> list[Measured]:
    """Start a server with the shipped model, and run every context's passes here and there."""
    model = load_model("auto", threads=options.threads)
    source = base_source()
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), source, ExportOptions(threads=options.threads))
        with TritonHost(Path(folder), environment, load=[source.name]) as host:
            address = parse_address(host.url)
            assert address is not None  # a server always has one
            there = TritonEngine(
                address,
                source.name,
                sha256=source.sha256,
                precision=source.files.precision,
                timeout_s=_PASS_S,
            )
            there.open(loads=False)
            here: Run = model.scorer.pass_engine.run
            runs = {HERE: here, THERE: there.run, LOGITS: without_vectors(there.run)}
            for context in options.contexts:
                passes = record(model, context, options.requests)
                found += measure(context, passes, runs, options.rounds)
            there.close()
    return found


def without_vectors(run: Run) -> Run:
    """Run passes as with heads in the server, which then sends no vectors."""

    def run_alone(inputs: dict[str, Any], outputs: Sequence[str]) -> dict[str, Any]:
        return run(inputs, [name for name in outputs if name != _VECTORS])

    return run_alone


def table(found: Sequence[Measured]) -> str:
    """Return every way's wall time, and how much longer it is than in process in the same round."""
    first = {one.context: one for one in reversed(found)}
    lines = []
    for one in found:
        more = [a - b for a, b in zip(one.wall, first[one.context].wall, strict=True)]
        lines.append(
            [
                one.context,
                one.engine,
                str(one.n_passes),
                f"{np.median(one.wall):.2f}",
                f"{np.median(more):+.2f} ({min(more):+.2f} to {max(more):+.2f})",
                f"{np.median(one.cpu):.2f}",
                f"{one.largest_difference:.1e}",
            ]
        )
    header = ["context", "where", "passes", "wall ms", "more than in process", "CPU ms here"]
    return text_table([*header, "logits differ by"], lines)


if __name__ == "__main__":
    sys.exit(main())
