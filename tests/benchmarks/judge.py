"""A judge beside the shipped model: alone, rotated, corrected without labels and with, and on a route.

On the public tasks of ``--data`` and on the yes/no questions of ``judge_questions.jsonl``, each with
its opposite, on which nothing is ever tuned::

    python tests/benchmarks/judge.py --data DATA --file model.gguf --rows 500 --cache answers.jsonl

The cache has the judge's answers by their questions, with the tokens and seconds that they took: a run
that was ended goes on there, and figures of more rows ask for those alone. Two dozen rows of each task
show the differences on a laptop. The judge gives way to everything else.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from heldout import find_sources, read_rows
from machine import describe_machine
from quality_tables import text_table
from sklearn.metrics import roc_auc_score

from models import load_model
from steelyard.calibration.metrics import ece
from steelyard.calibration.temperature import fit_temperature_table, softmax
from steelyard.decisions.kinds import BINARY_NAMES
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.serving.auto import AUTO_THRESHOLD
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.judge.asking import Asker
from steelyard.serving.judge.engine import JudgeEngine
from steelyard.serving.judge.evidence import NEUTRAL_CONTEXTS
from steelyard.serving.judge.pool import JudgePool
from steelyard.serving.judge.prompts import (
    OPPOSITE_TOKENS,
    ask_for_opposite,
    opposed,
    read_opposite,
)

QUESTIONS = Path(__file__).with_name("judge_questions.jsonl")
_TIMEOUT_S = 600.0
#: What calibration and route build on.
_BEST_FIRST = ("opposites", "own opposites", "rotations", "one order")


@dataclass(frozen=True, slots=True)
class Item:
    """One decision on one context, and the place of its right outcome."""

    context: str
    decision: RenderedDecision
    right: int


@dataclass(frozen=True, slots=True)
class Answers:
    """Probabilities of items, and their cost."""

    probabilities: list[np.ndarray]
    #: Of each decision.
    tokens: np.ndarray
    seconds: np.ndarray


class CachedJudge:
    """A judge whose answers are stored in a file, by question."""

    def __init__(self, file: Path, cache: Path | None, threads: int) -> None:
        model = ConnectedModel(
            wire="gguf", file=str(file), concurrency=1, threads=threads, timeout_s=_TIMEOUT_S
        )
        self._name = file.name
        self._engine = JudgeEngine("judge", model, file, JudgePool())
        self._answers: dict[str, Any] = {}
        if cache is not None and cache.exists():
            lines = cache.read_text(encoding="utf-8").splitlines()
            self._answers = {row["key"]: row for row in map(json.loads, lines)}
        self._cache = cache
        #: Of the way that is measured: a prompt that it asks again counts once.
        self.counted: set[str] = set()
        self.tokens, self.seconds = 0, 0.0

    async def next_token(self, context: str, text: str) -> Any:
        """Return the likeliest tokens after a question about a context."""

        async def ask() -> Any:
            [top] = await self._engine.ask(context, [text])
            return [{"token": entry["token"], "logprob": entry["logprob"]} for entry in top]

        return await self._cached([context, text], ask)

    async def opposite(self, question: str) -> str:
        """Return the opposite that the judge writes of a question."""
        messages = ask_for_opposite(question)

        async def ask() -> str:
            return await self._engine.write(messages, OPPOSITE_TOKENS)

        return read_opposite(await self._cached(messages, ask), question)

    async def _cached(self, prompt: Any, ask: Callable[[], Any]) -> Any:
        key = hashlib.sha256(json.dumps([self._name, prompt]).encode()).hexdigest()[:32]
        if key not in self._answers:
            before, began = self._engine.n_evaluated_tokens, time.perf_counter()
            row = {"key": key, "answer": await ask()}
            row["tokens"] = self._engine.n_evaluated_tokens - before
            row["seconds"] = time.perf_counter() - began
            self._answers[key] = row
            if self._cache is not None:
                with self._cache.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(row) + "\n")
        row = self._answers[key]
        if key not in self.counted:
            self.counted.add(key)
            self.tokens += row["tokens"]
            self.seconds += row["seconds"]
        return row["answer"]

    async def close(self) -> None:
        """End its process."""
        await self._engine.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every way on every task; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of public tasks")
    parser.add_argument("--file", type=Path, required=True, help="GGUF file of the judge")
    parser.add_argument("--cache", type=Path, help="where its answers stay [default: nowhere]")
    parser.add_argument("--rows", type=int, default=500, help="of each public task")
    parser.add_argument("--questions", type=int, default=100, help="of the yes/no questions")
    parser.add_argument(
        "--labels", type=int, default=200, help="most rows that a calibration is fitted on"
    )
    parser.add_argument("--tasks", default="", help="names, separated by commas [default: all]")
    parser.add_argument("--ways", default="", help="of the judge, likewise [default: all]")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()))
    asyncio.run(measure_all(options))
    return 0


async def measure_all(options: argparse.Namespace) -> None:
    """Print the figures of every task, and their means."""
    tasks = read_tasks(options)
    shipped = load_model("auto", threads=options.threads or None)
    judge = CachedJudge(options.file, options.cache, options.threads)
    results = {}
    try:
        for task, items in tasks.items():
            results[task] = await measure(items, shipped, judge, options)
            print(f"\n{task}: {len(items)} decisions")
            print(table(results[task]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        await judge.close()
    groups = {"yes/no": set(), "choices": set()}
    for task in tasks.keys() - {"questions"}:
        is_yes_no = tasks[task][0].decision.kind == "binary"
        groups["yes/no" if is_yes_no else "choices"].add(task)
    for group, names in groups.items():
        if len(names) > 1:
            print(f"\nMean of the public tasks, {group}: {', '.join(sorted(names))}")
            print(table(means([results[name] for name in names])))


def read_tasks(options: argparse.Namespace) -> dict[str, list[Item]]:
    """Return the items of the questions and of each public task."""
    tasks = {"questions": read_questions()[: options.questions]}
    for name, path in (find_sources(options.data) if options.data else {}).items():
        rows = read_rows(path, options.rows)
        tasks[name] = [
            Item(row.request.context, decision, int(target.argmax()))
            for row in rows
            for decision, target in zip(row.request.decisions, row.targets, strict=True)
        ]
    chosen = set(options.tasks.split(",")) if options.tasks else set(tasks)
    return {name: items for name, items in tasks.items() if name in chosen and items}


def read_questions() -> list[Item]:
    """Return the yes/no questions with their opposites."""
    rows = map(json.loads, QUESTIONS.read_text(encoding="utf-8").splitlines())
    return [
        Item(
            row["context"],
            RenderedDecision(
                "binary", row["question"], BINARY_NAMES, BINARY_NAMES, opposite=row["opposite"]
            ),
            BINARY_NAMES.index(row["answer"]),
        )
        for row in rows
    ]


async def measure(
    items: list[Item], shipped: object, judge: CachedJudge, options: argparse.Namespace
) -> dict[str, dict[str, float | None]]:
    """Return the figures of every way on one task."""
    asks = {"one order": plain(1), "rotations": plain()}
    if all(item.decision.opposite for item in items):
        asks["opposites"] = with_opposite
    if all(item.decision.kind == "binary" for item in items):
        asks |= {"own opposites": with_own_opposite, "letters": with_letters}
    if len({item.decision for item in items}) < len(items):
        # Where every question is new, it costs more than the answers.
        asks["contextual"] = contextual
    if options.ways:
        asks = {name: way for name, way in asks.items() if name in options.ways.split(",")}
    ways = {"shipped": ask_shipped(items, shipped), **await ask_judge(items, judge, asks)}
    if "rotations" in ways:
        ways["batch"] = batch_calibrated(items, ways["rotations"])
    best = next(ways[name] for name in _BEST_FIRST if name in ways)
    results = {name: figures(items, answers) for name, answers in ways.items()}
    n_labels = min(options.labels, len(items) // 2)
    results[f"calibrated on {n_labels}"] = figures(items, calibrated(items, best, n_labels))
    results["route auto"] = figures(items, on_route(items, ways["shipped"], best))
    return results


#: Gives the log probabilities of an item's outcomes.
Way = Callable[[Item, CachedJudge], Any]


def plain(orders: int | None = None) -> Way:
    """Return the way that asks some orders of the outcomes."""

    async def ask(item: Item, judge: CachedJudge) -> np.ndarray:
        return await log_shares(item.context, item.decision, judge, orders)

    return ask


async def log_shares(
    context: str, decision: RenderedDecision, judge: CachedJudge, orders: int | None = None
) -> np.ndarray:
    """Return the log probabilities of a decision's outcomes, its opposite left out."""
    asker = Asker(lambda text: judge.next_token(context, text), orders)
    return (await asker.ask(replace(decision, opposite=""))).context


async def contextual(item: Item, judge: CachedJudge) -> np.ndarray:
    """Divide by the judge's answers to texts without content."""
    logs = await log_shares(item.context, item.decision, judge)
    neutral = [await log_shares(context, item.decision, judge) for context in NEUTRAL_CONTEXTS]
    return logs - np.mean(neutral, axis=0)


async def with_letters(item: Item, judge: CachedJudge) -> np.ndarray:
    """Ask a yes/no as a choice between two letters too."""
    logs = await log_shares(item.context, item.decision, judge)
    lettered = RenderedDecision("single", item.decision.question, ("Yes", "No"), ("Yes", "No"))
    return (logs + await log_shares(item.context, lettered, judge)) / 2


async def with_opposite(item: Item, judge: CachedJudge) -> np.ndarray:
    """Ask the opposite too."""
    logs = await log_shares(item.context, item.decision, judge)
    return logs + (await log_shares(item.context, opposed(item.decision), judge))[::-1]


async def with_own_opposite(item: Item, judge: CachedJudge) -> np.ndarray:
    """Ask the opposite too that the judge writes; where it writes none, the question alone."""
    opposite = await judge.opposite(item.decision.question)
    if not opposite:
        return await log_shares(item.context, item.decision, judge)
    other = replace(item, decision=replace(item.decision, opposite=opposite))
    return await with_opposite(other, judge)


def ask_shipped(items: list[Item], shipped: object) -> Answers:
    """Return the shipped model's answers."""
    probabilities, seconds = [], []
    for item in items:
        began = time.perf_counter()
        [[scored]] = shipped.scorer.score([RenderedRequest(item.context, (item.decision,))])
        probabilities.append(shipped.temperatures.probabilities(scored.logits, item.decision.kind))
        seconds.append(time.perf_counter() - began)
    return Answers(probabilities, np.zeros(len(items)), np.array(seconds))


async def ask_judge(
    items: list[Item], judge: CachedJudge, asks: dict[str, Way]
) -> dict[str, Answers]:
    """Return a judge's answers in several ways; a question of two of them counts for both.

    All ways ask about one context before the next, which is read once.
    """
    rows: dict[str, list[tuple[np.ndarray, int, float]]] = {name: [] for name in asks}
    counted: dict[str, set[str]] = {name: set() for name in asks}
    for place, item in enumerate(items, 1):
        for name, way in asks.items():
            tokens, seconds, judge.counted = judge.tokens, judge.seconds, counted[name]
            probabilities = softmax(await way(item, judge))
            rows[name].append((probabilities, judge.tokens - tokens, judge.seconds - seconds))
        if not place % 10:
            print(f"{place} of {len(items)} decisions", file=sys.stderr, flush=True)
    return {
        name: Answers([row[0] for row in each], *np.array([row[1:] for row in each]).T)
        for name, each in rows.items()
    }


def batch_calibrated(items: list[Item], answers: Answers) -> Answers:
    """Return answers divided by the mean answer to the same question (Zhou and others, 2024)."""
    logs = [np.log(answer) for answer in answers.probabilities]
    by_question: dict[RenderedDecision, list[np.ndarray]] = {}
    for item, log in zip(items, logs, strict=True):
        by_question.setdefault(item.decision, []).append(log)
    means = {decision: np.mean(same, axis=0) for decision, same in by_question.items()}
    if len(means) == len(items):  # no question twice: what all of them lean to
        means = dict.fromkeys(means, np.mean(logs, axis=0))
    divided = [softmax(log - means[item.decision]) for item, log in zip(items, logs, strict=True)]
    return replace(answers, probabilities=divided)


def on_route(items: list[Item], shipped: Answers, judge: Answers) -> Answers:
    """Return the answers of the route ``auto``."""
    goes = np.array(
        [
            item.decision.kind == "binary" or float(answer.max()) < AUTO_THRESHOLD
            for item, answer in zip(items, shipped.probabilities, strict=True)
        ]
    )
    probabilities = [
        other if is_asked else own
        for own, other, is_asked in zip(
            shipped.probabilities, judge.probabilities, goes, strict=True
        )
    ]
    return Answers(probabilities, judge.tokens * goes, shipped.seconds + judge.seconds * goes)


def calibrated(items: list[Item], answers: Answers, n_labels: int) -> Answers:
    """Return the answers at temperatures fitted on other rows: each part of them by the rest."""
    logits = [np.log(answer) for answer in answers.probabilities]
    targets = [np.eye(len(answer))[item.right] for item, answer in zip(items, logits, strict=True)]
    kinds = [item.decision.kind for item in items]
    parts = np.arange(len(items)) % 2
    fitted = {}
    for part in (0, 1):
        others = np.flatnonzero(parts != part)[:n_labels]
        fitted[part] = fit_temperature_table(
            *([whole[place] for place in others] for whole in (kinds, logits, targets)),
            min_decisions=1 << 30,
        )
    probabilities = [
        fitted[part].probabilities(one, kind)
        for part, one, kind in zip(parts.tolist(), logits, kinds, strict=True)
    ]
    return replace(answers, probabilities=probabilities)


def figures(items: list[Item], answers: Answers) -> dict[str, float | None]:
    """Return accuracy, log loss, expected calibration error, AUC of yes/no, tokens and seconds."""
    right = np.array([item.right for item in items])
    top = np.array([int(answer.argmax()) for answer in answers.probabilities])
    own = [answer[item.right] for answer, item in zip(answers.probabilities, items, strict=True)]
    is_yes_no = all(item.decision.kind == "binary" for item in items) and len(set(right)) == 2
    yes = [float(answer[0]) for answer in answers.probabilities]
    return {
        "accuracy": float((top == right).mean()),
        "log loss": float(-np.log(np.maximum(own, 1e-9)).mean()),
        "ECE": calibration_error(items, answers),
        "AUC": float(roc_auc_score(right == 0, yes)) if is_yes_no else None,
        "tokens": float(answers.tokens.sum()),
        "seconds": float(answers.seconds.sum()),
    }


def calibration_error(items: list[Item], answers: Answers) -> float:
    """Return the expected calibration error of the top outcomes."""
    width = max(map(len, answers.probabilities))
    padded = np.array([np.pad(one, (0, width - len(one))) for one in answers.probabilities])
    return ece(padded, np.eye(width)[[item.right for item in items]])


def means(tables: list[dict[str, dict[str, float | None]]]) -> dict[str, dict[str, float | None]]:
    """Return the mean of each figure over tasks, for the ways that all have."""
    ways = [way for way in tables[0] if all(way in other for other in tables)]
    return {
        way: {
            name: None
            if any(other[way][name] is None for other in tables)
            else float(np.mean([other[way][name] for other in tables]))
            for name in tables[0][way]
        }
        for way in ways
    }


def table(results: dict[str, dict[str, float | None]]) -> str:
    """Return the figures of one task as a table."""
    form: dict[str, Callable[[float], str]] = {
        "tokens": "{:.0f}".format,
        "seconds": "{:.1f}".format,
    }
    names = list(next(iter(results.values())))
    rows = [
        [
            way,
            *(
                "-" if row[name] is None else form.get(name, "{:.3f}".format)(row[name])
                for name in names
            ),
        ]
        for way, row in results.items()
    ]
    return text_table(["", *names], rows)


if __name__ == "__main__":
    raise SystemExit(main())
