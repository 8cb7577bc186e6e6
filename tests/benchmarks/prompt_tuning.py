"""What prompt tuning gains on held-out tasks, and what it calls improved where labels say nothing."""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heldout import find_sources
from machine import describe_machine
from quality_tables import text_table

import steelyard
from steelyard.client import Client


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune each task once with its labels, and with labels that were shuffled; return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled text")
    parser.add_argument("--tasks", nargs="+", metavar="NAME")
    parser.add_argument("--train", type=int, default=300, help="training rows of a task, at most")
    parser.add_argument("--evaluate", type=int, default=200, help="evaluation rows of a task")
    parser.add_argument("--effort", choices=("standard", "thorough"), default="standard")
    parser.add_argument("--shuffles", type=int, default=1, help="shuffled runs of each task")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    sources = find_sources(options.data)
    if not sources:
        print(f"There is no labelled text in {options.data}; nothing was measured.")
        return 0
    print("\n".join(describe_machine()))
    found: list[dict[str, Any]] = []
    with steelyard.embed() as server:
        for name in options.tasks or sources:
            rows = _rows(sources[name], options.train + options.evaluate)
            for shuffle in range(options.shuffles + 1):
                labelled = _shuffled(rows, shuffle) if shuffle else rows
                figures = _tune(server.client, name, labelled, options.train, options.effort)
                found.append({"task": name, "shuffle": shuffle, **figures})
                print(json.dumps(found[-1]), flush=True)
    print(_table([one for one in found if not one["shuffle"]]))
    shuffled = [one["verdict"] for one in found if one["shuffle"]]
    print(f"{shuffled.count('improved')} of {len(shuffled)} shuffled runs were called improved")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _rows(path: Path, n: int) -> list[dict[str, Any]]:
    """Return a task's rows with its commonest decision alone, in a fixed random order."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    worded = Counter(
        json.dumps(decision) for row in rows for decision in row["decisions"]
    ).most_common(1)[0][0]
    decision = json.loads(worded)
    chosen = [
        {
            "context": row["context"],
            "decisions": [decision],
            "targets": {decision["id"]: row["targets"][decision["id"]]},
        }
        for row in rows
        if decision in row["decisions"] and decision["id"] in row["targets"]
    ]
    unique = list({json.dumps(row["context"]): row for row in chosen}.values())
    random.Random(1).shuffle(unique)
    return unique[:n]


def _shuffled(rows: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    targets = [row["targets"] for row in rows]
    random.Random(seed).shuffle(targets)
    return [{**row, "targets": target} for row, target in zip(rows, targets, strict=True)]


def _tune(
    client: Client, name: str, rows: list[dict[str, Any]], n_train: int, effort: str
) -> dict[str, Any]:
    share = min(0.5, max(0.1, 1 - n_train / len(rows)))
    dataset = client.datasets.create(name, rows, evaluation_fraction=share)
    try:
        job = client.prompt_tuning.create(dataset.id, effort=effort)  # type: ignore[arg-type]
    except steelyard.errors.SteelyardError as error:
        return {"verdict": error.code}
    job = client.prompt_tuning.wait(job, progress=False)
    if job.result is None:
        return {"verdict": job.status, "error": job.error and job.error.message}
    test = job.result.test
    figures: dict[str, Any] = {"verdict": job.result.verdict, "rounds": len(job.result.rounds)}
    if test is not None:
        figures |= {
            "rows": test.rows,
            "loss": [test.original_loss, test.tuned_loss],
            "gain": [test.gain, test.gain_low, test.gain_high],
            "noise": job.result.noise_band,
            "accuracy": [test.original_accuracy, test.tuned_accuracy],
            "label_shares_loss": test.label_shares_loss,
        }
    return figures


def _table(found: list[dict[str, Any]]) -> str:
    header = ["task", "verdict", "log loss", "tuned", "gain (95 %)", "right", "tuned"]
    body = []
    for one in found:
        line = [one["task"], one["verdict"]]
        if "loss" in one:
            gain, low, high = one["gain"]
            line += [
                *(f"{loss:.3f}" for loss in one["loss"]),
                f"{gain:.3f} ({low:.3f} to {high:.3f})",
            ]
            line += [f"{share:.3f}" for share in one["accuracy"]]
        body.append(line + [""] * (len(header) - len(line)))
    return text_table(header, body)


if __name__ == "__main__":
    sys.exit(main())
