"""Families on yes/no and few rows, with and without a reader's evidence among their features.

Each task is a yes/no of the held-out files, or one of their choices made a yes/no. It is learned from
some rows, drawn anew each time, by both ways as a fine-tune learns it, and asked on others. The reader
alone stands beside them.

``python tests/benchmarks/evidence.py --data DIR [--tasks NAME ...] [--sizes 20 50 100 200] [--draws 3]``

The data are not part of this repository; without ``--data`` it is skipped.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from heldout import find_sources, read_rows
from quality_tables import text_table
from words import tuning_row

from models import add_arguments, load_model
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.proof.differences import Bootstrap, Paired
from steelyard.scoring.entailment.reader import EvidenceReader
from steelyard.scoring.heads import Heads
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.shipped import READER
from steelyard.scoring.tuned import TunedScorer
from steelyard.trainer.features import compute_features
from steelyard.trainer.fitting import fit_heads
from steelyard.trainer.records import RememberingScorer
from steelyard.trainer.rows import TuningRow

#: Of held-out choices that are made a yes/no: its name, an outcome, and the question.
CHOICES = {
    "ag_news": [("sports", "Sports", "Is this news item about sports?")],
    "trec": [("person", "human being", "Does the question ask for a person?")],
    "medical_abstracts": [("tumours", "neoplasms", "Is the abstract about tumours?")],
    "banking77": [
        ("charged_twice", "transaction charged twice", "Was the customer charged twice?"),
        ("refund", "request refund", "Does the customer ask for a refund?"),
        ("declined", "declined cash withdrawal", "Was a cash withdrawal declined?"),
    ],
    "clinc150": [("booking", "restaurant reservation", "Does the user want to book a table?")],
}
#: Requests that a model is timed on.
TIMED = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each task and number of rows, and one for all tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of NAME.train and NAME.test.jsonl.gz")
    parser.add_argument("--tasks", nargs="+", help="(default: all)")
    parser.add_argument("--sizes", nargs="+", type=int, default=[20, 50, 100, 200])
    parser.add_argument("--draws", type=int, default=3, help="draws of the rows to learn from")
    parser.add_argument("--rows", type=int, default=300, help="test rows of a task, at most")
    parser.add_argument("--seed", type=int, default=0)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.data is None:
        print("skipped: evidence.py reads labelled text from --data DIR")
        return 0
    scorer = load_model((options.engine or ["auto"])[0], threads=options.threads).scorer
    lines = []
    found: dict[int, list[Figures]] = defaultdict(list)
    for name, rows in read_tasks(options.data, options.tasks):
        n_tests = min(options.rows, len(rows) // 2)
        for size in (size for size in options.sizes if size <= len(rows) - n_tests):
            figures = compare(
                rows,
                size,
                options.draws,
                options.rows,
                scorer,
                EvidenceReader(READER),
                options.seed,
            )
            found[size].append(figures)
            lines.append(line_of(name, size, figures))
            print(" | ".join(lines[-1]), flush=True)
    lines += [line_of("all", size, joined(figures)) for size, figures in found.items()]
    head = "task,rows,taken,right: without,with,change in points,log loss: without,with,change,reader alone: right,log loss"
    head += ",ms a decision: without,with where taken"
    print(text_table(head.split(","), lines))
    return 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Of every draw: whether each test row was right and its loss, by way; and the way taken."""

    right: Mapping[str, np.ndarray]
    losses: Mapping[str, np.ndarray]
    rows: np.ndarray
    taken: list[bool]
    ms: Mapping[str, list[float]]


def read_tasks(data: Path, names: Sequence[str] | None) -> Iterator[tuple[str, list[TuningRow]]]:
    """Yield the rows of each task: of the held-out yes/no, and of choices that are made one."""
    for source, path in find_sources(data).items():
        partner = path.with_name(path.name.replace(".test.", ".train."))
        files = [file for file in (path, partner) if file.is_file()]
        rows = {row.context: row for file in files for row in map(tuning_row, read_rows(file))}
        wordings = Counter(row.decision for row in rows.values() if row.decision.kind == "binary")
        if wordings and (not names or source in names):
            [(commonest, _)] = wordings.most_common(1)
            yield source, [row for row in rows.values() if row.decision == commonest]
        for name, label, question in CHOICES.get(source, ()):
            if not names or name in names:
                yield name, yes_no(list(rows.values()), label, question)


def yes_no(rows: Sequence[TuningRow], label: str, question: str) -> list[TuningRow]:
    """Return the rows of an outcome as *yes*, and as many others as *no*."""
    decision = RenderedDecision("binary", question, ("yes", "no"))
    by_answer: dict[bool, list[TuningRow]] = {True: [], False: []}
    for row in rows:
        top = row.decision.outcomes[int(row.labels.argmax())]
        by_answer[top.partition(":")[0] == label].append(row)
    n = min(map(len, by_answer.values()))
    return [
        replace(row, decision=decision, labels=np.array([is_yes, not is_yes], float))
        for is_yes, found in by_answer.items()
        for row in (found[i] for i in np.random.default_rng(0).permutation(len(found))[:n])
    ]


def compare(
    rows: Sequence[TuningRow],
    size: int,
    draws: int,
    n_tests: int,
    scorer: Any,
    reader: Any,
    seed: int,
) -> Figures:
    """Fit both ways on each draw, and ask them and the reader the same test rows."""
    order = np.random.default_rng(seed).permutation(len(rows))
    n_tests = min(n_tests, len(rows) // 2)
    tests, pool = [rows[i] for i in order[:n_tests]], [rows[i] for i in order[n_tests:]]
    read = {"base": RememberingScorer(scorer), "reader": RememberingScorer(reader)}
    right, losses = defaultdict(list), defaultdict(list)
    taken: list[bool] = []
    ms: dict[str, list[float]] = {"without": [], "with": []}
    labels = np.array([int(row.labels.argmax()) for row in tests])
    requests = [RenderedRequest(row.context, (row.decision,)) for row in tests]
    for draw in range(draws):
        chosen = np.random.default_rng([seed, draw]).choice(len(pool), size, replace=False)
        for way in ("without", "with", "alone"):
            model: Scorer = read["reader"]
            if way != "alone":
                heads = fit([pool[i] for i in chosen], read, seed, has_reader=way == "with")
                model = TunedScorer(heads, read["base"], reader=read["reader"])
                taken += [any(head.needs_evidence for head in heads)] * (way == "with")
                if way == "without" or taken[-1]:
                    plain = TunedScorer(heads, scorer, reader=reader)
                    ms[way].append(timed(plain, requests[:TIMED]))
            logs = np.stack([answer.logits.astype(float) for [answer] in model.score(requests)])
            logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
            right[way].append(logs.argmax(axis=1) == labels)
            losses[way].append(-np.maximum(logs[np.arange(len(labels)), labels], np.log(1e-6)))
    return Figures(
        {way: np.concatenate(each).astype(float) for way, each in right.items()},
        {way: np.concatenate(each) for way, each in losses.items()},
        np.tile(np.arange(n_tests), draws),
        taken,
        ms,
    )


def fit(
    rows: Sequence[TuningRow], read: Mapping[str, Any], seed: int, *, has_reader: bool
) -> Heads:
    """Fit heads as a fine-tune does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "features").mkdir()
        features = compute_features(
            rows,
            read["base"],
            folder / "features",
            lambda *_: None,
            reader=read["reader"] if has_reader else None,
        )
        fit_heads(
            rows, features, method="sft", seed=seed, folder=folder, on_progress=lambda *_: None
        )
        return Heads.load(folder)


def timed(model: TunedScorer, requests: Sequence[RenderedRequest]) -> float:
    """Return the CPU milliseconds of a decision that is asked alone."""
    model.score(requests[:1])
    began = time.process_time()
    for request in requests:
        model.score([request])
    return (time.process_time() - began) * 1000 / len(requests)


def joined(figures: Sequence[Figures]) -> Figures:
    """Return the figures of several tasks as of one."""
    starts = np.cumsum([0, *(len(each.rows) for each in figures)])
    return Figures(
        {way: np.concatenate([each.right[way] for each in figures]) for way in figures[0].right},
        {way: np.concatenate([each.losses[way] for each in figures]) for way in figures[0].losses},
        np.concatenate([each.rows + start for each, start in zip(figures, starts, strict=False)]),
        [taken for each in figures for taken in each.taken],
        {way: [one for each in figures for one in each.ms[way]] for way in ("without", "with")},
    )


def line_of(name: str, size: int, figures: Figures) -> list[str]:
    """Return the line of a task and a number of rows."""
    right, losses = figures.right, figures.losses

    def change(values: Mapping[str, np.ndarray], factor: int, digits: int) -> str:
        pairs = Paired(values["without"][:, None], values["with"][:, None], figures.rows)
        found = pairs.percentile_difference(Bootstrap(seed=0))
        mean, low, high = (factor * each for each in (found.change, found.low, found.high))
        return f"{mean:+.{digits}f} [{low:+.{digits}f} {high:+.{digits}f}]"

    ms = [f"{np.mean(each):.1f}" if each else "" for each in figures.ms.values()]
    return [
        name,
        str(size),
        f"{sum(figures.taken)}/{len(figures.taken)}",
        f"{right['without'].mean():.3f}",
        f"{right['with'].mean():.3f}",
        change(right, 100, 1),
        f"{losses['without'].mean():.3f}",
        f"{losses['with'].mean():.3f}",
        change(losses, 1, 3),
        f"{right['alone'].mean():.3f}",
        f"{losses['alone'].mean():.3f}",
        *ms,
    ]


if __name__ == "__main__":
    sys.exit(main())
