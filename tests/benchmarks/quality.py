"""Held-out quality: accuracy, log loss, Brier score and calibration error, with 95 % intervals.

Run it as a script; ``README.md`` beside it says how, and explains the columns. It reads labelled
text from a folder that is not part of this repository, and skips without it.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from biencoder import BiEncoder, find_weights, similarity_tops
from estimates import Estimate, Sample, mean_figures
from heldout import LabelledRow, distracted, find_sources, read_rows
from machine import describe_machine
from quality_tables import engine_table, quality_table, reliability_text

from models import add_also, add_arguments, load_model, models_asked
from steelyard.calibration.intervals import N_RESAMPLES
from steelyard.calibration.metrics import (
    decision_brier_scores,
    decision_hits,
    decision_log_losses,
    pad_rows,
)
from steelyard.calibration.reliability import ReliabilityBin, reliability_table
from steelyard.calibration.temperature import TemperatureTable

#: Rows scored in one call.
ROWS_A_CALL = 64
#: The engine that stands for no scorer: the baselines alone.
NO_ENGINE = "none"


@dataclass(slots=True)
class EngineResult:
    """One engine's results on the held-out tasks: figures by task, by source, and over all."""

    engine: str
    tasks: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    sources: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    reliability: dict[str, dict[str, tuple[ReliabilityBin, ...]]] = field(default_factory=dict)
    n_decisions: dict[str, int] = field(default_factory=dict)

    def take(self, source: str, found: dict[tuple[str, ...], Estimate]) -> None:
        """Keep the figures of a source: of each of its tasks, and their mean."""
        tasks = list(dict.fromkeys(key[0] for key in found))
        self.tasks |= {task: figures_of_task(found, task, self.engine) for task in tasks}
        self.sources[source] = mean_figures([self.tasks[task] for task in tasks])

    def overall(self) -> dict[str, Estimate]:
        return mean_figures(list(self.sources.values()))


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.data is None:
        print("skipped: quality.py reads labelled text from --data DIR")
        return 0
    everything = find_sources(options.data)
    wanted = options.tasks or everything
    sources = {name: path for name, path in everything.items() if name in wanted}
    if not sources:
        print(f"skipped: no held-out files of that name under {options.data}")
        return 0
    encoder = load_biencoder(options.biencoder)
    engines = [load_engine(name, folder, options) for folder, name in models_asked(options)]
    results = {label: EngineResult(label) for label, _ in engines}
    for source, path in sources.items():
        rows = read_rows(path, options.rows, options.seed)
        if options.distract:
            others = [other for name, other in everything.items() if name != source]
            texts = [row.request.context for one in others for row in read_rows(one, 100)]
            rows = distracted(rows, texts, options.distract, options.seed)
        print(f"{source}: {len(rows)} rows", file=sys.stderr, flush=True)
        tops = similarity_tops(encoder, rows, options.cache) if encoder else None
        sample = ask_measures(source, rows, tops, engines, results)
        seed = options.seed + zlib.crc32(source.encode())
        found = sample.estimates(n_resamples=options.resamples, seed=seed)
        for result in results.values():
            result.take(source, found)
    print("\n".join(describe_machine()))
    bound = f"at most {options.rows}, seed {options.seed}" if options.rows else "all"
    around = f"; {options.distract} words around every context" if options.distract else ""
    print(f"rows a source: {bound}{around}; 95 % intervals\n")
    for result in results.values():
        print(quality_table(result))
        if options.reliability:
            print(reliability_text(result))
    if len(results) > 1:
        print(engine_table(list(results.values())))
    if options.json:
        options.json.write_text(json.dumps(as_json(results, options), indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of *.test.jsonl.gz, or its parent")
    parser.add_argument("--rows", type=int, help="rows a source, a seeded sample (default: all)")
    parser.add_argument("--tasks", nargs="+", help="sources to measure (default: all found)")
    parser.add_argument(
        "--distract",
        type=int,
        default=0,
        metavar="WORDS",
        help="words of the other sources to put around every context",
    )
    add_arguments(parser)
    add_also(parser)
    parser.add_argument("--biencoder", type=Path, help="folder of the untouched encoder's weights")
    parser.add_argument(
        "--cache", type=Path, help="folder that keeps the untouched encoder's answers"
    )
    parser.add_argument("--reliability", action="store_true", help="print reliability tables too")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--resamples", type=int, default=N_RESAMPLES)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def load_biencoder(folder: Path | None) -> BiEncoder | None:
    weights = find_weights(folder)
    if weights is None:
        print("the similarity baseline is skipped: no weights (--biencoder DIR)", file=sys.stderr)
        return None
    return BiEncoder(weights)


def load_engine(name: str, folder: Path | None, options: argparse.Namespace) -> tuple[str, Any]:
    """Return a label and the model, or None in its place for the baselines alone."""
    if name == NO_ENGINE:
        return NO_ENGINE, None
    model = load_model(name, folder=folder, threads=options.threads)
    label = f"{folder.name if folder else 'shipped'} " if options.also else ""
    return f"{label}{model.scorer.engine}", model


def score_rows(scorer: Any, rows: Sequence[LabelledRow]) -> list[list[np.ndarray]]:
    """Return each row's logits, one array a decision."""
    logits = []
    for start in range(0, len(rows), ROWS_A_CALL):
        requests = [row.request for row in rows[start : start + ROWS_A_CALL]]
        logits += [[one.logits for one in answered] for answered in scorer.score(requests)]
        print(f"  {len(logits)} of {len(rows)}", end="\r", file=sys.stderr, flush=True)
    return logits


def ask_measures(
    source: str,
    rows: Sequence[LabelledRow],
    tops: list[list[int]] | None,
    engines: Sequence[tuple[str, Any]],
    results: dict[str, EngineResult],
) -> Sample:
    """Score one source with every engine, and ask for each task's measures of one sample."""
    logits = {label: score_rows(base.scorer, rows) for label, base in engines if base}
    sample = Sample([row.request.context for row in rows])
    decision_ids = list(dict.fromkeys(one for row in rows for one in row.decision_ids))
    for decision_id in decision_ids:
        task = source if len(decision_ids) == 1 else f"{source}/{decision_id}"
        places = [
            (index, row.decision_ids.index(decision_id))
            for index, row in enumerate(rows)
            if decision_id in row.decision_ids
        ]
        chosen = np.array([row for row, _ in places])
        decisions = [rows[row].request.decisions[place] for row, place in places]
        targets = pad_rows([rows[row].targets[place] for row, place in places])
        labels = [
            one.outcomes[largest]
            for one, largest in zip(decisions, targets.argmax(axis=1), strict=True)
        ]
        most_frequent = max(sorted(set(labels)), key=labels.count)
        sample.add_share((task, "majority"), chosen, np.array(labels) == most_frequent)
        if tops is not None:
            similar = np.array([tops[row][place] for row, place in places])
            sample.add_share((task, "similarity"), chosen, similar == targets.argmax(axis=1))
        for label, base in engines:
            results[label].n_decisions[task] = len(places)
            for when, table in tables_of(base).items():
                p = pad_rows(
                    [
                        table.probabilities(logits[label][row][place], decision.kind)
                        for (row, place), decision in zip(places, decisions, strict=True)
                    ]
                )
                add_measures(sample, (task, label, when), chosen, p, targets)
                bins = reliability_table(p, targets)
                results[label].reliability.setdefault(task, {})[when] = bins
    return sample


def tables_of(base: Any) -> dict[str, TemperatureTable]:
    """Return the temperatures to measure with: none, and the base model's own."""
    return {"before": TemperatureTable(), "after": base.temperatures} if base else {}


def add_measures(
    sample: Sample,
    key: tuple[str, str, str],
    chosen: np.ndarray,
    p: np.ndarray,
    targets: np.ndarray,
) -> None:
    hits = decision_hits(p, targets)
    sample.add_share((*key, "accuracy"), chosen, hits)
    sample.add_mean((*key, "log_loss"), chosen, decision_log_losses(p, targets))
    sample.add_mean((*key, "brier"), chosen, decision_brier_scores(p, targets))
    sample.add_ece((*key, "ece"), chosen, p.max(axis=1), hits)


def figures_of_task(
    found: dict[tuple[str, ...], Estimate], task: str, label: str
) -> dict[str, Estimate]:
    """Return one engine's figures on a task by name: ``log_loss.after``, ``similarity``, ``gain``."""
    figures = {f"{key[3]}.{key[2]}": one for key, one in found.items() if key[:2] == (task, label)}
    figures |= {key[1]: one for key, one in found.items() if key[0] == task and len(key) == 2}
    if "accuracy.after" in figures and "similarity" in figures:
        figures["gain"] = figures["accuracy.after"] - figures["similarity"]
    return figures


def as_json(results: dict[str, EngineResult], options: argparse.Namespace) -> dict[str, Any]:
    """Return every figure with its interval, and the measured rows."""
    return {
        "machine": describe_machine(),
        "rows": options.rows,
        "seed": options.seed,
        "engines": {
            label: {
                "n": result.n_decisions,
                "tasks": {name: figures_json(one) for name, one in result.tasks.items()},
                "sources": {name: figures_json(one) for name, one in result.sources.items()},
                "mean": figures_json(result.overall()),
            }
            for label, result in results.items()
        },
    }


def figures_json(figures: dict[str, Estimate]) -> dict[str, dict[str, float | str]]:
    found = {}
    for name, one in figures.items():
        interval = one.interval()
        found[name] = {
            "value": one.point,
            "low": interval.low,
            "high": interval.high,
            "method": interval.method,
        }
    return found


if __name__ == "__main__":
    sys.exit(main())
