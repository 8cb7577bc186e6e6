"""A judge beside the shipped model: alone, rotated, corrected without labels and with, and on a route.

On the public tasks of ``--data`` and on the yes/no questions of ``judge_questions.jsonl``, each with
its opposite, on which nothing is ever tuned::

    python tests/benchmarks/judge.py --data DATA --file model.gguf --rows 500

A tenth of the rows shows the differences on a laptop. The judge gives way to everything else.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from heldout import find_sources, read_rows
from machine import describe_machine
from quality_tables import text_table
from sklearn.metrics import roc_auc_score

from models import load_model
from steelyard.calibration.metrics import ece
from steelyard.calibration.temperature import TemperatureTable, fit_temperature_table
from steelyard.decisions.kinds import BINARY_NAMES
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.connected.hosting import open_queue
from steelyard.serving.connected.queue import Loop
from steelyard.serving.judge.declaring import AUTO_THRESHOLD

QUESTIONS = Path(__file__).with_name("judge_questions.jsonl")
_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Item:
    """One decision on one context, and the place of its right outcome."""

    context: str
    decision: RenderedDecision
    right: int


@dataclass(frozen=True, slots=True)
class Answers:
    """Probabilities of items, and what they took."""

    probabilities: list[np.ndarray]
    tokens: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every way on every task; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of public tasks")
    parser.add_argument("--file", type=Path, required=True, help="GGUF file of the judge")
    parser.add_argument("--rows", type=int, default=500, help="of each public task")
    parser.add_argument("--questions", type=int, default=100, help="of the yes/no questions")
    parser.add_argument(
        "--labels", type=int, default=200, help="rows that a calibration is fitted on"
    )
    parser.add_argument("--tasks", default="", help="names, separated by commas [default: all]")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()))
    tasks = read_tasks(options)
    shipped = load_model("auto", threads=options.threads or None)
    results = {}
    for task, items in tasks.items():
        results[task] = measure(task, items, shipped, options)
        print(f"\n{task}: {len(items)} decisions")
        print(table(results[task]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


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


def measure(task: str, items: list[Item], shipped: object, options: argparse.Namespace) -> dict:
    """Return the figures of every way on one task."""
    ways = {"shipped": ask_shipped(items, shipped)}
    plain = [replace(item, decision=replace(item.decision, opposite="")) for item in items]
    ways["one order"] = ask_judge(plain, options, permutations=1, contextual=False)
    ways["rotations"] = ask_judge(plain, options, contextual=False)
    ways["contextual"] = ask_judge(plain, options)
    if items != plain:
        ways["opposites"] = ask_judge(items, options)
    best = ways.get("opposites", ways["contextual"])
    results = {name: figures(items, answers) for name, answers in ways.items()}
    if len(items) > options.labels:
        results[f"calibrated on {options.labels}"] = calibrated(items, best, options.labels)
    results["route auto"] = figures(items, on_route(items, ways["shipped"], best))
    return results


def ask_shipped(items: list[Item], shipped: object) -> Answers:
    """Return what the shipped model answers."""
    began = time.perf_counter()
    probabilities = []
    for item in items:
        [[scored]] = shipped.scorer.score([RenderedRequest(item.context, (item.decision,))])
        probabilities.append(shipped.temperatures.probabilities(scored.logits, item.decision.kind))
    return Answers(probabilities, 0, time.perf_counter() - began)


def ask_judge(items: list[Item], options: argparse.Namespace, **given: object) -> Answers:
    """Return what a judge answers; each way has a process of its own, with nothing in its cache."""
    model = ConnectedModel(
        wire="gguf",
        file=str(options.file.absolute()),
        concurrency=1,
        threads=options.threads,
        timeout_s=_TIMEOUT_S,
        **given,
    )
    loop = Loop()
    queue = open_queue("judge", model, loop, max_queue=8)
    try:
        queue.submit(RenderedRequest("", (items[0].decision,)), _TIMEOUT_S).result(_TIMEOUT_S)
        before, began = queue._remote.n_evaluated_tokens, time.perf_counter()
        probabilities = []
        for item in items:
            request = RenderedRequest(item.context, (item.decision,))
            [scored] = queue.submit(request, _TIMEOUT_S).result(_TIMEOUT_S)
            probabilities.append(np.exp(scored.logits.astype(np.float64)))
        seconds = time.perf_counter() - began
        return Answers(probabilities, queue._remote.n_evaluated_tokens - before, seconds)
    finally:
        queue.close()
        loop.close()


def on_route(items: list[Item], shipped: Answers, judge: Answers) -> Answers:
    """Return the answers of the route ``auto``; what the judge is asked counts by its mean."""
    stays = [
        item.decision.kind != "binary" and float(answer.max()) >= AUTO_THRESHOLD
        for item, answer in zip(items, shipped.probabilities, strict=True)
    ]
    share = 1 - np.mean(stays)
    probabilities = [
        own if stays_here else other
        for own, other, stays_here in zip(
            shipped.probabilities, judge.probabilities, stays, strict=True
        )
    ]
    seconds = shipped.seconds + share * judge.seconds
    return Answers(probabilities, round(judge.tokens * share), float(seconds))


def calibrated(items: list[Item], answers: Answers, n_labels: int) -> dict[str, float | None]:
    """Return the figures after temperatures that were fitted on the first rows, of the others."""
    kinds = [item.decision.kind for item in items]
    logits = [np.log(answer) for answer in answers.probabilities]
    targets = [np.eye(len(answer))[item.right] for item, answer in zip(items, logits, strict=True)]
    fitted: TemperatureTable = fit_temperature_table(
        kinds[:n_labels], logits[:n_labels], targets[:n_labels], min_decisions=1 << 30
    )
    rest = [
        fitted.probabilities(one, kind)
        for one, kind in zip(logits[n_labels:], kinds[n_labels:], strict=True)
    ]
    share = len(rest) / len(items)
    spent = Answers(rest, round(answers.tokens * share), answers.seconds * share)
    return figures(items[n_labels:], spent)


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
        "tokens": float(answers.tokens),
        "seconds": answers.seconds,
    }


def calibration_error(items: list[Item], answers: Answers) -> float:
    """Return the expected calibration error of the top outcomes."""
    width = max(map(len, answers.probabilities))
    padded = np.array([np.pad(one, (0, width - len(one))) for one in answers.probabilities])
    return ece(padded, np.eye(width)[[item.right for item in items]])


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
