"""A reader beside the shipped model and a judge: everyday yes/no questions as they are typed.

The questions of ``judge_questions.jsonl``, on which nothing is ever tuned, by every model in turns, so
that a busy machine slows all of them alike::

    python tests/benchmarks/reader.py --folder READER --file judge.gguf

With ``--rows FILE`` (``written.jsonl.gz``) the validation questions there, of three labels, show the
rows that a bound on ``unstated`` sends from the reader to a judge: chosen on half of the texts, shown
on both.

Without ``--file`` there is no judge, and ``auto`` is the shipped model and the reader. ``above`` is how
often the question that is true of a text is more probable than its opposite, both asked as typed; with
``noise`` 75 words of other texts stand around the context. CPU time is that of a question about a
context that was not read before.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import random
import statistics
import sys
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from judge import Item, read_questions
from machine import describe_machine
from quality_tables import text_table
from sklearn.metrics import roc_auc_score
from speed import cpu_ms

from models import load_model
from steelyard.calibration.metrics import ece
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.scoring.batching import Batcher
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.auto import auto_route
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.connected.queue import ConnectedQueue, Loop
from steelyard.serving.connected_hosting import open_queue
from steelyard.serving.reader.declaring import BUNDLED
from steelyard.serving.routed.queue import carry

_TIMEOUT_S = 600.0
_ROWS = 3_000
_NOISE_WORDS = 75
_COST_TOKENS, _COST_ROUNDS = (150, 400), 20
#: Requests of a model that are sent at once, and how often, alone and beside the reader by turns.
_AT_ONCE, _TURNS = 50, 5

#: Gives the probability of yes.
Model = Callable[[str, RenderedDecision], float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every model; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=BUNDLED, help="the reader [default: shipped]"
    )
    parser.add_argument("--file", type=Path, help="GGUF file of a judge [default: none]")
    parser.add_argument("--rows", type=Path, help="questions with the label 2 for not said")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1, help="of each model")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()))
    items = [without_opposite(item) for item in read_questions()[: options.questions]]
    opposites = [item.decision.opposite for item in read_questions()[: options.questions]]
    if options.rows is not None:
        print(sent_on(options))
        return 0
    with ExitStack() as closing:
        models = open_models(options, closing)
        for title, contexts in (
            ("as typed", [item.context for item in items]),
            (f"{_NOISE_WORDS} words of noise", with_noise(items)),
        ):
            yes = ask(models, items, contexts, opposites)
            print(f"\n{title}\n\n{table(items, yes)}")
        print(f"\nCPU ms a question, median of {_COST_ROUNDS}\n\n{costs(models, items)}")
        print(f"\nMilliseconds, {_AT_ONCE} requests at once\n\n{together(models, items)}")
    return 0


def sent_on(options: argparse.Namespace) -> str:
    """Return how right the yes/no are that the reader of ``auto`` decides, by ``unstated``.

    A question that the text does not answer has no right answer.
    """
    with gzip.open(options.rows) as lines:
        rows = [row for row in map(json.loads, lines) if row["form"] == "question"]
    rows = [row for row in rows if row["split"] == "validation"]
    rows = random.Random(1).sample(rows, min(_ROWS, len(rows)))
    _, step, _ = auto_route("shipped", BUNDLED.name, "judge").steps
    half = np.array([zlib.crc32(row["premise"].encode()) % 2 for row in rows])
    label = np.array([row["label"] for row in rows])
    found = []
    with ExitStack() as closing:
        models = open_models(options, closing)
        for row in rows:
            decision = RenderedDecision("binary", row["hypothesis"], ("yes", "no"))
            before = models["shipped"](row["premise"], decision)
            score = models["reader"].score(row["premise"], decision)
            now = np.exp(score.logits - np.logaddexp.reduce(score.logits)).tolist()
            yes, _ = carry([before, 1 - before], now, step.carries, score.unstated or 0.0)
            found.append((yes, score.unstated or 0.0))
    yes, unstated = np.array(found).T
    is_right = (label < 2) & ((yes >= 0.5) == (label == 0))
    decides = np.maximum(yes, 1 - yes) >= step.by_kind["binary"]
    lines = []
    for low, high in itertools.pairwise((*np.arange(0.1, 0.7, 0.1), 1.0)):
        line = [f"{low:.1f} to {high:.1f}"]
        for place in (0, 1):
            at = decides & (half == place) & (unstated > low) & (unstated <= high)
            line += [
                str(at.sum()),
                *(f"{share[at].mean():.3f}" for share in (is_right, label == 2)),
            ]
        lines.append(line)
    header = ["unstated", *("decides", "right", "not said") * 2]
    return text_table(header, lines)


def without_opposite(item: Item) -> Item:
    """Return an item whose question alone is asked."""
    return replace(item, decision=replace(item.decision, opposite=""))


def open_models(options: argparse.Namespace, closing: ExitStack) -> dict[str, Any]:
    """Return the models by name."""
    loop = Loop()
    closing.callback(loop.close)
    shipped = load_model("auto", threads=options.threads)
    closing.callback(shipped.scorer.close)
    batcher = Batcher(shipped.scorer)
    closing.callback(batcher.close)

    def ask_shipped(context: str, decision: RenderedDecision) -> float:
        [score] = batcher.submit(RenderedRequest(context, (decision,))).result(_TIMEOUT_S)
        return float(shipped.temperatures.probabilities(score.logits, decision.kind)[0])

    models: dict[str, Any] = {"shipped": ask_shipped}
    declared = {
        "reader": ConnectedModel(
            wire="entailment",
            file=str(options.folder.absolute()),
            threads=options.threads,
            timeout_s=_TIMEOUT_S,
        )
    }
    if options.file is not None:
        declared["judge"] = ConnectedModel(
            wire="gguf",
            file=str(options.file.absolute()),
            threads=options.threads,
            concurrency=1,
            timeout_s=_TIMEOUT_S,
        )
    for name, model in declared.items():
        queue = open_queue(name, model, loop, max_queue=2 * _AT_ONCE)
        closing.callback(queue.close)
        models[name] = Asker(queue)
    return models


@dataclass(frozen=True)
class Asker:
    """Asks a connected model for the probability of yes."""

    queue: ConnectedQueue

    def score(self, context: str, decision: RenderedDecision) -> ScoredDecision:
        """Return the whole score of a decision."""
        [score] = self.queue.submit(RenderedRequest(context, (decision,))).result(_TIMEOUT_S)
        return score

    def __call__(self, context: str, decision: RenderedDecision) -> float:
        """Return the probability of yes."""
        score = self.score(context, decision)
        return float(np.exp(score.logits[0] - np.logaddexp.reduce(score.logits)))


def with_noise(items: Sequence[Item]) -> list[str]:
    """Return each context between words of others'."""
    noisy = []
    for place, item in enumerate(items):
        others = " ".join(items[(place + step) % len(items)].context for step in range(7, 60, 7))
        words = others.split()[:_NOISE_WORDS]
        half = len(words) // 2
        noisy.append(f"{' '.join(words[:half])}. {item.context} {' '.join(words[half:])}.")
    return noisy


def ask(
    models: dict[str, Model], items: Sequence[Item], contexts: Sequence[str], opposites: list[str]
) -> dict[str, np.ndarray]:
    """Return each model's probabilities of yes, to the question and to its opposite."""
    answers: dict[str, list[list[float]]] = {name: [] for name in models}
    for item, context, opposite in zip(items, contexts, opposites, strict=True):
        questions = [item.decision, replace(item.decision, question=opposite)]
        for name, model in models.items():
            answers[name].append([model(context, question) for question in questions])
    yes = {name: np.array(rows) for name, rows in answers.items()}
    return {**yes, "auto": on_auto(yes)}


def on_auto(yes: dict[str, np.ndarray]) -> np.ndarray:
    """Return the answers of the route ``auto``."""
    judge = "judge" if "judge" in yes else None
    _, reader, *rest = auto_route("shipped", "reader", judge).steps
    if not rest:
        return yes["reader"]
    p_top = np.maximum(yes["reader"], 1 - yes["reader"])
    return np.where(p_top >= reader.by_kind["binary"], yes["reader"], yes["judge"])


def table(items: Sequence[Item], yes: dict[str, np.ndarray]) -> str:
    """Return how good every model is."""
    header = ["model", "right", "log loss", "AUC", "ECE", "above"]
    is_yes = np.array([item.right == 0 for item in items])
    lines = []
    for name, both in yes.items():
        shares = np.clip(both[:, 0], 1e-6, 1 - 1e-6)
        right = (shares >= 0.5) == is_yes
        loss = -np.log(np.where(is_yes, shares, 1 - shares)).mean()
        above = (both[:, 0] > both[:, 1]) == is_yes
        pairs = [
            np.stack([column, 1 - column], axis=1) for column in (shares, is_yes.astype(float))
        ]
        figures = [right.mean(), loss, roc_auc_score(is_yes, shares), ece(*pairs)]
        lines.append([name, *(f"{value:.3f}" for value in figures), f"{above.sum()}/{len(items)}"])
    return text_table(header, lines)


def costs(models: dict[str, Model], items: Sequence[Item]) -> str:
    """Return the CPU time of a question about contexts of some lengths, models in turns."""
    text = " ".join(item.context for item in items).split()
    lines: dict[str, list[str]] = {name: [name] for name in models}
    for n_tokens in _COST_TOKENS:
        times: dict[str, list[float]] = {name: [] for name in models}
        n_words = int(n_tokens / 1.25)
        for turn in range(_COST_ROUNDS):
            context = " ".join(text[turn * 7 : turn * 7 + n_words])
            decision = items[turn].decision
            for name, model in models.items():
                times[name].append(cpu_ms(partial(model, context, decision)))
        for name, values in times.items():
            lines[name].append(f"{statistics.median(values):.1f}")
    return text_table(
        ["model", *(f"{n_tokens} tokens" for n_tokens in _COST_TOKENS)], list(lines.values())
    )


def together(models: dict[str, Model], items: Sequence[Item]) -> str:
    """Return the seconds of many requests to the shipped model alone, and beside as many to the reader."""
    times: dict[str, list[float]] = {"alone": [], "beside the reader": []}

    def time(at: int) -> float:
        item, started = items[at % len(items)], perf_counter()
        models["shipped"](f"{item.context} {at}", item.decision)
        return (perf_counter() - started) * 1000

    with ThreadPoolExecutor(2 * _AT_ONCE) as pool:
        for turn in range(_TURNS):
            for place, (name, values) in enumerate(times.items()):
                numbers = [(2 * turn + place) * _AT_ONCE + n for n in range(_AT_ONCE)]
                beside = [
                    pool.submit(models["reader"], f"{item.context} {n}", item.decision)
                    for n, item in zip(numbers, items * _AT_ONCE, strict=False)
                    if name != "alone"
                ]
                values.extend(pool.map(time, numbers))
                for reading in beside:
                    reading.result(_TIMEOUT_S)
    lines = [
        [name, *(f"{np.percentile(values, share):.1f}" for share in (50, 95))]
        for name, values in times.items()
    ]
    return text_table(["shipped", "p50", "p95"], lines)


if __name__ == "__main__":
    sys.exit(main())
