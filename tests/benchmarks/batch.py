"""Rows a second of ``decide --input`` beside the bare scorer; see README.md."""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import polars as pl
from machine import describe_machine
from quality_tables import text_table
from workloads import make_context

from steelyard.app.deployment import open_deployment
from steelyard.batch.scoring import Questions, decide_file
from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, render_decision
from steelyard.scoring.batching import Batcher
from steelyard.scoring.heads import Heads
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.tuned import TunedScorer
from steelyard.serving.decide import AnswerService, DecideService
from steelyard.settings import read_settings
from steelyard.trainer.features import Features
from steelyard.trainer.fitting import fit_heads
from steelyard.trainer.rows import TuningRow

_TEAM = {
    "id": "team",
    "question": "Which team should own this?",
    "outcomes": {"billing": "charges", "shipping": "parcels", "returns": None, "other": None},
}
#: Rows that a family of words alone learns from.
_LEARNED = 200
#: Characters that the scorer is given in a call, and the rows among which it takes like lengths.
_CALL_CHARACTERS, _WINDOW = 1024, 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Score the same rows both ways, in turns; return 0 when the file keeps 90 % of the rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--characters", type=int, nargs=2, default=(40, 400))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bare-rows", type=int, help="score so many bare, spread evenly; all")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--words", action="store_true", help="of a family of words alone")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()))
    lengths = random.Random(1)
    texts = [
        f"{number} {make_context(lengths.randint(*options.characters), number)}"
        for number in range(options.rows)
    ]
    settings = read_settings({"engine": options.engine})
    with ExitStack() as closing:
        deployment = closing.enter_context(open_deployment(settings))
        folder = closing.enter_context(tempfile.TemporaryDirectory())
        source, target = Path(folder, "rows.csv"), Path(folder, "scored.parquet")
        pl.DataFrame({"text": texts}).write_csv(source)
        answers, scorer = deployment.answers, deployment.model.scorer
        decision = render_decision(Questions([_TEAM]).checked()[0])
        if options.words:
            answers, scorer = closing.enter_context(words_alone(deployment, texts, decision))
        questions = Questions([_TEAM], load=lambda: answers)

        some = texts[:: max(1, options.rows // (options.bare_rows or options.rows))]

        def bare() -> None:
            for start in range(0, len(some), _WINDOW):
                left = sorted(some[start : start + _WINDOW], key=len)
                while left:
                    call = [left.pop()]
                    while left and sum(map(len, call)) < _CALL_CHARACTERS:
                        call.append(left.pop())
                    scorer.score(
                        [RenderedRequest(context=one, decisions=(decision,)) for one in call]
                    )

        def whole() -> None:
            decide_file(source, target, questions, overwrite=True)

        ways = {"bare scorer": (bare, len(some)), "decide --input": (whole, options.rows)}
        # What loads the machine beside it changes: bare before and after each.
        turns = ["bare scorer", *["decide --input", "bare scorer"] * options.rounds]
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for name in turns:
            way, n = ways[name]
            wall, cpu = perf_counter(), process_time()
            way()
            wall, cpu = perf_counter() - wall, process_time() - cpu
            print(f"{name}: {n} rows in {wall:.0f} s, {cpu:.1f} s of CPU", flush=True)
            rates[name].append((n / wall, n / cpu))
        n_scored = pl.scan_parquet(target).select(pl.len()).collect().item()
        if n_scored != options.rows:
            raise RuntimeError(f"{n_scored} of {options.rows} rows were scored.")
    medians = {name: np.median(found, axis=0) for name, found in rates.items()}
    base = medians["bare scorer"]
    rows = [
        [name, f"{wall:.0f}", f"{cpu:.0f}", f"{wall / base[0]:.2f}", f"{cpu / base[1]:.2f}"]
        for name, (wall, cpu) in medians.items()
    ]
    print(text_table(["", "rows/s", "rows/CPU s", "share", "share of CPU"], rows))
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at the most")
    return 0 if medians["decide --input"][0] >= 0.9 * base[0] else 1


@contextmanager
def words_alone(
    deployment: Any, texts: Sequence[str], decision: RenderedDecision
) -> Iterator[tuple[AnswerService, Scorer]]:
    """Fit heads of words alone on some of the texts, and yield who answers by them, and the scorer."""
    n = len(decision.outcomes)
    train = [
        TuningRow(text, hashlib.sha256(text.encode()).hexdigest(), decision, np.eye(n)[at % n])
        for at, text in enumerate(texts[:_LEARNED])
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fit_heads(
            train,
            Features(0, {}, {}),
            method="sft",
            seed=0,
            folder=folder,
            on_progress=lambda *_: None,
        )
        scorer = TunedScorer(Heads.load(folder), deployment.model.scorer)
    queue = Batcher(scorer)
    decide = DecideService(
        model_name=scorer.name,
        temperatures=TemperatureTable(),
        tokenizer=deployment.model.tokenizer,
    )
    try:
        yield AnswerService(decide, queue, deadline_s=60.0), scorer
    finally:
        queue.close()


if __name__ == "__main__":
    sys.exit(main())
