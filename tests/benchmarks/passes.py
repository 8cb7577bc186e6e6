"""CPU of the scorer for requests of several sizes, beside another version or engine, by turns."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from workloads import CONTEXTS, make_context, make_payload

from models import load_model
from steelyard.serving.decide import DecideService

#: What a worker is run with, before the name of its engine.
_WORKER = "--worker"


@dataclass(frozen=True, slots=True)
class Size:
    """Requests that are scored in one call: their context, questions, outcomes and number."""

    context: str
    questions: int
    outcomes: int
    requests: int = 1
    #: Whether the context was asked other questions before, for the same account.
    again: bool = False


SIZES = {
    "1,800 characters, 1 question": Size("medium", 1, 4),
    "1,800, yes/no": Size("medium", 1, 2),
    "1,800, 8 requests": Size("medium", 1, 4, requests=8),
    "1,800, 3 questions": Size("medium", 3, 4),
    "1,800, asked again with 3 others": Size("medium", 3, 4, again=True),
    "80, 1 question": Size("short", 1, 4),
    "80, 3 questions": Size("short", 3, 4),
    "80, 8 requests": Size("short", 1, 4, requests=8),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both by turns; return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == [_WORKER]:
        return work(arguments[1])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="PYTHON", default=sys.executable)
    parser.add_argument("--engine", default="auto", help="of this version")
    parser.add_argument("--against-engine", default="auto")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()))
    sides = {
        "this": [sys.executable, options.engine],
        "before": [options.against, options.against_engine],
    }
    figures = measure(sides, options.sizes, options.rounds)
    print(table(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def measure(
    sides: dict[str, list[str]], sizes: Sequence[str], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Return CPU milliseconds by size and side, one a round; the first two rounds warm up."""
    figures = {size: {side: [] for side in sides} for size in sizes}
    with ExitStack() as stack:
        workers = {
            side: stack.enter_context(
                subprocess.Popen(
                    [python, __file__, _WORKER, engine],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for side, (python, engine) in sides.items()
        }
        for size in sizes:
            for turn in range(-2, rounds):
                for side in sorted(workers, reverse=bool(turn % 2)):
                    spent = ask(workers[side], size)
                    if turn >= 0:
                        figures[size][side].append(spent)
    return figures


def ask(worker: subprocess.Popen[str], size: str) -> float:
    """Return the cost of a worker's next requests of a size."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{size}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def work(engine: str) -> int:
    """Score requests of the sizes that the standard input names; print CPU milliseconds of each."""
    model = load_model(engine, threads=1)
    service = DecideService(model_name="made", temperatures=None, tokenizer=model.tokenizer)
    for number, line in enumerate(sys.stdin):
        size = SIZES[line.strip()]
        if size.again:
            model.scorer.score(make_requests(service, size, -1 - number, size.questions))
            model.scorer.score(make_requests(service, size, number))
        requests = make_requests(service, size, number, size.questions * size.again)
        began = time.process_time()
        model.scorer.score(requests)
        print((time.process_time() - began) * 1e3, flush=True)
    return 0


def make_requests(
    service: DecideService, size: Size, number: int, first_question: int = 0
) -> list[Any]:
    """Return requests whose contexts no other number has."""
    requests = [
        service.prepare(
            make_payload(
                context=make_context(CONTEXTS[size.context], 1_000_000 + 100 * number + each),
                n_questions=size.questions,
                n_outcomes=size.outcomes,
                first_question=first_question,
            )
        ).rendered
        for each in range(size.requests)
    ]
    # Versions that know no owner keep nothing of a context.
    if size.again and hasattr(requests[0], "owner"):
        return [replace(request, owner="benchmark") for request in requests]
    return requests


def table(figures: dict[str, dict[str, list[float]]]) -> str:
    """Return the least and the median of each side, and their ratios."""
    # Not in a worker: it needs parts of this version.
    from quality_tables import text_table

    header = ["CPU ms: least, median", "this", "before", "least over least", "median of ratios"]
    lines = []
    for size, sides in figures.items():
        this, before = (np.array(sides[side]) for side in ("this", "before"))
        shown = [f"{min(side):.1f}, {np.median(side):.1f}" for side in (this, before)]
        ratios = [f"{min(this) / min(before):.2f}", f"{np.median(this / before):.2f}"]
        lines.append([size, *shown, *ratios])
    return text_table(header, lines)


if __name__ == "__main__":
    sys.exit(main())
