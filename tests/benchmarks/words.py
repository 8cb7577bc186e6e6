"""Words alone beside the heads that read the base model, on the same rows of public tasks.

For each task the commonest wording of its first decision is learned from some rows, by both, and
asked on others. The base's reading, which both need before they learn, counts as fitting.

``python tests/benchmarks/words.py --data DIR [--tasks NAME ...] [--sizes 200 2000 0] [--rows 1000]``

A size of 0 takes every row. The data are not part of this repository; without ``--data`` it is skipped.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from heldout import LabelledRow, find_sources, read_rows
from quality_tables import text_table

from models import add_arguments, load_model
from steelyard.decisions.rendering import RenderedRequest
from steelyard.proof.differences import Bootstrap, Paired
from steelyard.proof.margins import is_as_right
from steelyard.scoring.heads import Heads, fingerprint
from steelyard.scoring.novelty import TrainingTexts, word_vectors
from steelyard.scoring.tuned import TunedScorer
from steelyard.trainer.cheapest import MARGIN
from steelyard.trainer.features import Features, compute_features
from steelyard.trainer.fitting import fit_heads
from steelyard.trainer.rows import TuningRow
from steelyard.trainer.static import StaticWords

#: Rows of a file without a partner for training that are kept to test on, at most a third.
TESTED = 3
FALSE_ALARMS = 0.05
_HEAD = (
    "task,rows,outcomes,right: words,base,change in points,cheapest takes,log loss: words,base,"
    "fit in CPU s: words,base,decisions/CPU s: words,base,strange found: words,base"
)
#: Texts of each other task, none of which a model should know.
STRANGE = 40


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one way to answer a task."""

    right: np.ndarray
    losses: np.ndarray
    seconds: float
    a_second: float
    strange: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each task and number of rows."""
    return print_figures(__doc__, _HEAD, compare, arguments)


def print_figures(
    doc: str, head: str, compare: Callable[..., list[str]], arguments: Sequence[str] | None
) -> int:
    """Print what a comparison finds on each task with each number of its rows."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of NAME.train and NAME.test.jsonl.gz")
    parser.add_argument("--tasks", nargs="+", help="(default: all)")
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 2_000, 0])
    parser.add_argument("--rows", type=int, default=1_000, help="test rows of a task, at most")
    parser.add_argument("--seed", type=int, default=0)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.data is None:
        print("skipped: labelled text is read from --data DIR")
        return 0
    sources = find_sources(options.data)
    scorer = load_model((options.engine or ["auto"])[0], threads=options.threads).scorer
    strange = {
        name: [row.request.context for row in read_rows(path, STRANGE, options.seed)]
        for name, path in sources.items()
    }
    lines = []
    for name in options.tasks or sources:
        others = [text for other, texts in strange.items() if other != name for text in texts]
        sides = sides_of(sources[name], options.rows, options.seed)
        for size in options.sizes:
            train = sides[0][: size or None]
            if size and len(train) < size and options.sizes.index(size):
                continue
            lines.append(compare(name, train, sides[1], others, scorer, options.seed))
            print(" | ".join(lines[-1]), flush=True)
    print(text_table(head.split(","), lines))
    return 0


def sides_of(path: Path, n_tests: int, seed: int) -> tuple[list[TuningRow], list[TuningRow]]:
    """Return the rows to train on, in a seeded order, and those to test on."""
    rng = np.random.default_rng(seed)
    partner = path.with_name(path.name.replace(".test.", ".train."))
    if partner.is_file():
        train, tests = read_rows(partner), read_rows(path, n_tests, seed)
    else:
        rows = read_rows(path)
        order = rng.permutation(len(rows))
        n_tests = min(n_tests, len(rows) // TESTED)
        tests, train = [rows[i] for i in order[:n_tests]], [rows[i] for i in order[n_tests:]]
    sides = [[tuning_row(row) for row in side] for side in (train, tests)]
    counts = Counter(fingerprint(row.decision) for row in sides[0])
    [(commonest, _)] = counts.most_common(1)
    train, tests = (
        [row for row in side if fingerprint(row.decision) == commonest] for side in sides
    )
    known = {row.context for row in train}
    return [train[i] for i in rng.permutation(len(train))], [
        row for row in tests if row.context not in known
    ]


def tuning_row(row: LabelledRow) -> TuningRow:
    """Return a row with its first decision."""
    context = row.request.context
    name = hashlib.sha256(context.encode()).hexdigest()
    return TuningRow(context, name, row.request.decisions[0], row.targets[0])


def compare(
    name: str,
    train: Sequence[TuningRow],
    tests: Sequence[TuningRow],
    strange: Sequence[str],
    scorer: Any,
    seed: int,
) -> list[str]:
    """Return the line of a task: both ways on the same rows."""
    words, base = (
        measure(train, tests, strange, scorer, seed, reads=reads) for reads in (False, True)
    )
    pairs = Paired(base.right[:, None], words.right[:, None], np.arange(len(tests)))
    change = pairs.percentile_difference(Bootstrap(seed=seed))
    return [
        name,
        f"{len(train):,}",
        str(len(tests[0].decision.outcomes)),
        f"{words.right.mean():.3f}",
        f"{base.right.mean():.3f}",
        f"{change.change * 100:+.1f} [{change.low * 100:+.1f} {change.high * 100:+.1f}]",
        # With these as its held-out rows.
        "words"
        if is_as_right(change.change, change.low, margin=MARGIN, n_comparisons=1)
        else "base",
        f"{words.losses.mean():.3f}",
        f"{base.losses.mean():.3f}",
        f"{words.seconds:.1f}",
        f"{base.seconds:.1f}",
        f"{words.a_second:,.0f}",
        f"{base.a_second:,.0f}",
        f"{words.strange:.2f}",
        f"{base.strange:.2f}",
    ]


def measure(
    train: Sequence[TuningRow],
    tests: Sequence[TuningRow],
    strange: Sequence[str],
    scorer: Any,
    seed: int,
    *,
    reads: bool,
) -> Figures:
    """Fit heads as a fine-tune does, and ask them everything at once."""
    began = time.process_time()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "features").mkdir()
        features = (
            compute_features(train, scorer, folder / "features", lambda *_: None)
            if reads
            else Features(0, {}, {}, static=StaticWords.of(scorer))
        )
        fit_heads(
            train, features, method="sft", seed=seed, folder=folder, on_progress=lambda *_: None
        )
        heads = Heads.load(folder)
    seconds = time.process_time() - began
    embed = scorer.embed if reads else word_vectors
    texts = TrainingTexts.of(
        (row.context for row in train), (row.context for row in tests), embed, of_words=not reads
    )
    tuned = TunedScorer(heads, scorer)
    requests = [RenderedRequest(row.context, (row.decision,)) for row in tests]
    tuned.score(requests[:2])
    began = time.process_time()
    scored = tuned.score(requests)
    a_second = len(requests) / (time.process_time() - began)
    labels = [int(row.labels.argmax()) for row in tests]
    logs = [answer.logits.astype(float) for [answer] in scored]
    limit = texts.limit(FALSE_ALARMS)
    return Figures(
        right=np.array(
            [log.argmax() == label for log, label in zip(logs, labels, strict=True)], float
        ),
        losses=np.array([-log[label] for log, label in zip(logs, labels, strict=True)]),
        seconds=seconds,
        a_second=a_second,
        strange=float((texts.distances_of(embed(list(strange))) > limit).mean()),
    )


if __name__ == "__main__":
    sys.exit(main())
