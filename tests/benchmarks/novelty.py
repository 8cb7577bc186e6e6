"""A family's answers about texts unlike its training rows, before and after it abstains.

Heads are trained on one labelled task. Texts of other tasks have no right answer among its outcomes:
each that is answered is answered wrongly. The table gives for the task's own test rows and for each
other source the share that is answered, that is answered surely (a top probability of .8 or more),
and that is answered wrongly, without a threshold and at each rate of false alarms.

``python tests/benchmarks/novelty.py --data DIR [--task banking77] [--rows 300]``

The data are not part of this repository; without ``--data`` it is skipped.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from heldout import LabelledRow, find_sources, read_rows
from quality_tables import text_table

from models import add_arguments, load_model
from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.heads import Heads
from steelyard.scoring.novelty import TrainingTexts
from steelyard.scoring.tuned import TunedScorer
from steelyard.trainer.features import compute_features
from steelyard.trainer.fitting import fit_heads
from steelyard.trainer.rows import TuningRow

SURE = 0.8
RATES = (0.01, 0.05, 0.1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of NAME.train and NAME.test.jsonl.gz")
    parser.add_argument("--task", default="banking77")
    parser.add_argument("--rows", type=int, default=300, help="test rows of each source")
    parser.add_argument("--training", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.data is None:
        print("skipped: novelty.py reads labelled text from --data DIR")
        return 0
    sources = find_sources(options.data)
    own = sources.pop(options.task)
    scorer = load_model((options.engine or ["auto"])[0], threads=options.threads).scorer
    train = read_rows(
        own.with_name(f"{options.task}.train.jsonl.gz"), options.training, options.seed
    )
    held_out = read_rows(own, 2 * options.rows, options.seed)
    tests = {options.task: held_out[options.rows :]}
    tests |= {name: read_rows(path, options.rows, options.seed) for name, path in sources.items()}
    tuned = train_heads(train, held_out[: options.rows], scorer, options.seed)
    lines = [line for name, rows in tests.items() for line in lines_of(name, rows, train, tuned)]
    print(text_table(["texts", "false alarms", "answered", "surely", "wrongly"], lines))
    return 0


def train_heads(
    train: Sequence[LabelledRow], held_out: Sequence[LabelledRow], scorer: Any, seed: int
) -> TunedScorer:
    """Return a model with heads of a task, as a fine-tune makes them."""
    rows = [
        TuningRow(
            row.request.context,
            hashlib.sha256(row.request.context.encode()).hexdigest(),
            row.request.decisions[0],
            row.targets[0],
        )
        for row in train
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "features").mkdir()
        features = compute_features(rows, scorer, folder / "features", lambda *_: None)
        fit_heads(
            rows, features, method="sft", seed=seed, folder=folder, on_progress=lambda *_: None
        )
        heads = Heads.load(folder)
    others = [row.request.context for row in held_out]
    training = TrainingTexts.of((row.context for row in rows), others, scorer.embed)
    return TunedScorer(heads, scorer, training=training)


def lines_of(
    name: str, rows: Sequence[LabelledRow], train: Sequence[LabelledRow], tuned: TunedScorer
) -> list[list[str]]:
    """Return the results on the texts of a source, without a threshold and with each."""
    decision = train[0].request.decisions[0]
    requests = [RenderedRequest(row.request.context, (decision,)) for row in rows]
    answers = [one for [one] in tuned.score(requests)]
    top = np.array([one.logits.argmax() for one in answers])
    p_top = np.exp([one.logits.max() for one in answers])
    distance = tuned.training.distances_of(tuned.embed([one.context for one in requests]))
    right = np.array([_right(row, decision.outcomes) for row in rows])
    lines = []
    for rate in (None, *RATES):
        limit = np.inf if rate is None else tuned.training.limit(rate)
        if limit is None:
            continue
        is_answered = distance <= limit
        counts = (is_answered, is_answered & (p_top >= SURE), is_answered & (top != right))
        shown = (f"{count.mean():.3f}" for count in counts)
        lines.append([name, "no threshold" if rate is None else f"{rate:g}", *shown])
    return lines


def _right(row: LabelledRow, outcomes: Sequence[str]) -> int:
    """Return the place of the right outcome; -1 where a task has none of these."""
    own = row.request.decisions[0].outcomes
    name = own[int(row.targets[0].argmax())]
    return outcomes.index(name) if name in outcomes and set(own) == set(outcomes) else -1


if __name__ == "__main__":
    sys.exit(main())
