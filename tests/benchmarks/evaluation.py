"""How fast an evaluation scores rows, beside the bare scorer on the same rows.

Both in one process, in turns, on the same model: the bare scorer gets the rendered requests in the
batches that the engine's queue would make; the evaluation reads the rows of a stored dataset,
renders, queues, calibrates, and commits predictions as it goes. Given is rows a second of each, and
the share.

Run on a quiet machine: ``python tests/benchmarks/evaluation.py [--rows 10000] [--engine auto]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from steelyard.app.services import ApiServices
from steelyard.datasets.service import DatasetService
from steelyard.decisions.rendering import RenderedRequest
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.rows import RowRenderer
from steelyard.evaluations.run import EvaluationRuns
from steelyard.evaluations.service import EvaluationService
from steelyard.scoring.batching import BATCH_CHARACTERS
from steelyard.storage.frame_store import open_store
from support.models.evaluated import ME, claim, make_dataset, open_home, submit

_SAMPLES = Path(__file__).resolve().parents[2] / "datasets"


def sample_rows(n_rows: int) -> list[dict[str, Any]]:
    """Rows of the sample data, repeated with words that make each context its own."""
    (file,) = sorted(_SAMPLES.glob("**/*triage*.jsonl"))[:1]
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
    rng = random.Random(0)
    rows = []
    for number in range(n_rows):
        row = dict(lines[number % len(lines)])
        context, ticket = row["context"], rng.randrange(10**6)
        if isinstance(context, str):
            row["context"] = f"{context} (ticket {ticket})"
        elif isinstance(context, list):
            row["context"] = [*context, {"ticket": ticket}]
        else:
            row["context"] = {**context, "ticket": ticket}
        rows.append(row)
    return rows


def in_batches(requests: Sequence[RenderedRequest]) -> list[list[RenderedRequest]]:
    """Requests in the order of their length, in batches as the queue makes them."""

    def size(request: RenderedRequest) -> int:
        asked = sum(len(d.question) + sum(map(len, d.outcomes)) for d in request.decisions)
        return len(request.context) + asked

    batches: list[list[RenderedRequest]] = [[]]
    held = 0
    for request in sorted(requests, key=size, reverse=True):
        if batches[-1] and held + size(request) > BATCH_CHARACTERS:
            batches.append([])
            held = 0
        batches[-1].append(request)
        held += size(request)
    return batches


def bare_seconds(services: ApiServices, requests: Sequence[RenderedRequest]) -> float:
    scorer = services.models.default.queue._scorer  # type: ignore[attr-defined]
    batches = in_batches(requests)
    started = time.perf_counter()
    for batch in batches:
        scorer.score(batch)
    return time.perf_counter() - started


def evaluation_seconds(services: ApiServices, home: Path, dataset_id: str, model: str) -> float:
    """Seconds of a whole evaluation, from its beginning to its metrics."""
    (evaluation,) = submit(services, dataset_id, [model]).data
    store = open_store(home / "frames" / "evaluations")
    models = EvaluatedModels(services.models)
    runs = EvaluationRuns(services.state, store, services.get(DatasetService), models)
    started = time.perf_counter()
    run = claim(services.state, runs, evaluation.id)
    while run.advance():
        pass
    seconds = time.perf_counter() - started
    ended = asyncio.run(services.get(EvaluationService).get(ME, evaluation.id))
    assert ended.status == "succeeded", ended
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    rows = sample_rows(given.rows)
    shares = []
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            with open_home(home, engine=given.engine) as services:
                model = services.models.default
                dataset = make_dataset(services, rows)
                at = asyncio.run(services.get(DatasetService).dataset_at(ME, dataset.id))
                renderer = RowRenderer(model.decide)
                requests = [
                    renderer.render(row, place).request
                    for place, row in enumerate(services.get(DatasetService).evaluation_rows(at))
                ]
                bare_seconds(services, requests[:256])  # warm
                half = bare_seconds(services, requests[::2])
                whole = evaluation_seconds(services, home, dataset.id, model.name)
                half += bare_seconds(services, requests[1::2])
        bare, measured = len(requests) / half, len(requests) / whole
        shares.append(measured / bare)
        print(
            f"{model.name} on {model.engine}: bare scorer {bare:,.0f} rows/s, evaluation "
            f"{measured:,.0f} rows/s, {measured / bare:.1%}"
        )
    print(f"median share {statistics.median(shares):.1%}")


if __name__ == "__main__":
    main()
