"""The gain of prompt tuning on held-out tasks, and false gains where labels are noise.

The search and the proof are those of a job, in this process, with the model's answers cached: runs on
shuffled labels ask much the same.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from heldout import find_sources
from machine import describe_machine
from quality_tables import text_table

from steelyard.calibration.intervals import proportion_interval
from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.kinds import Decision
from steelyard.decisions.rendering import RenderedRequest, render_context, render_decision
from steelyard.prompt_tuning.candidates import Candidates
from steelyard.prompt_tuning.proof import losses_of, prove, shares_of
from steelyard.prompt_tuning.reading import (
    VALIDATION_ROWS,
    AskedRows,
    learn_and_validate,
    read_decision,
)
from steelyard.prompt_tuning.searching import Scores, SearchState, run_round
from steelyard.prompt_tuning.telling_words import TellingWords
from steelyard.prompt_tuning.wording import Wording, reworded, wording_of
from steelyard.scoring.assets import BaseModel, load_base_model
from steelyard.scoring.protocol import ScoredDecision

_TRAIN, _TEST = ".train.jsonl.gz", ".test.jsonl.gz"
#: Wordings that are asked together on one context.
_TOGETHER = 16


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune each task with its labels, or with labels that were shuffled; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled text")
    parser.add_argument("--tasks", nargs="+", metavar="NAME")
    parser.add_argument("--train", type=int, default=800, help="training rows of a task")
    parser.add_argument(
        "--validate", type=int, default=VALIDATION_ROWS, help="of them, that judge wordings at most"
    )
    parser.add_argument("--evaluate", type=int, default=1_000, help="evaluation rows of a task")
    parser.add_argument("--rounds", type=int, default=4, help="of a search; 4 is standard")
    parser.add_argument("--shuffles", type=int, default=0, help="instead: so many shuffled runs")
    parser.add_argument(
        "--words", action="store_true", help="with a reader that counts shared words as the model"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    sources = find_sources(options.data)
    if not sources:
        print(f"There is no labelled text in {options.data}; nothing was measured.")
        return 0
    print("\n".join(describe_machine()))
    model = _Words() if options.words else load_base_model()
    found: list[dict[str, Any]] = []
    for name in options.tasks or sources:
        training, evaluation = _sides(sources[name], options.train, options.evaluate)
        reader = _Reader(model, read_decision(training[0]["decisions"][0]))
        for shuffle in range(1, options.shuffles + 1) if options.shuffles else [0]:
            began = time.monotonic()
            sides = (
                _shuffled([training, evaluation], shuffle) if shuffle else [training, evaluation]
            )
            learnt, evaluated = (_asked(one, reader.decision) for one in sides)
            figures = _tune(reader, learnt, evaluated, options)
            seconds = round(time.monotonic() - began)
            found.append({"task": name, "shuffle": shuffle, "seconds": seconds, **figures})
            print(json.dumps(found[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.shuffles:
        n = sum(one["verdict"] == "improved" for one in found)
        interval = proportion_interval(n, len(found))
        print(
            f"{n} of {len(found)} shuffled runs were called improved ({interval.low:.1%} to {interval.high:.1%})"
        )
    else:
        print(_table(found))
    return 0


class _Words:
    """Reads an outcome as likelier by each word that it shares with the context; very fast."""

    temperatures = TemperatureTable()

    def __init__(self) -> None:
        self.scorer = self
        self._split = lru_cache(None)(lambda text: frozenset(re.findall(r"\w+", text.casefold())))

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Return logits of one for each shared word."""
        return [
            [
                ScoredDecision(
                    np.array(
                        [
                            len(self._split(request.context) & self._split(text))
                            for text in one.outcomes
                        ],
                        np.float32,
                    ),
                    np.zeros((len(one.outcomes), 1), np.float32),
                )
                for one in request.decisions
            ]
            for request in requests
        ]


class _Reader:
    """The base model's answers to rows in a wording; each is asked once."""

    def __init__(self, model: BaseModel | _Words, decision: Decision) -> None:
        self._model, self.decision = model, decision
        self._said: dict[tuple[Wording, str], list[float]] = {}

    def probabilities(self, wordings: Sequence[Wording], rows: AskedRows) -> np.ndarray:
        """Return probabilities of shape (n_wordings, n_rows, n_outcomes)."""
        for context in rows.contexts:
            new = [one for one in wordings if (one, context) not in self._said]
            for start in range(0, len(new), _TOGETHER):
                self._ask(context, new[start : start + _TOGETHER])
        return np.array(
            [[self._said[one, context] for context in rows.contexts] for one in wordings]
        )

    def _ask(self, context: str, wordings: Sequence[Wording]) -> None:
        decisions = tuple(render_decision(reworded(self.decision, one)) for one in wordings)
        [scored] = self._model.scorer.score([RenderedRequest(context, decisions)])
        for wording, one in zip(wordings, scored, strict=True):
            told = self._model.temperatures.probabilities(one.logits, self.decision.kind)
            self._said[wording, context] = told.tolist()


def _tune(
    reader: _Reader, training: AskedRows, evaluation: AskedRows, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the verdict and the numbers behind it, as a job finds them."""
    decision = reader.decision
    names, original = decision.outcomes.names, wording_of(decision)
    learnt, judged = learn_and_validate(training)
    judged = judged.sample(options.validate)
    words = TellingWords(learnt.contexts, learnt.labels, len(names))
    candidates = Candidates(decision, original, words)

    def score(wordings: Sequence[Wording], places: np.ndarray) -> list[Scores]:
        rows = judged.at(int(place) for place in places)
        told = reader.probabilities(wordings, rows)
        return [Scores(losses_of(one, rows.targets), one) for one in told]

    loss = float(score([original], np.arange(len(judged)))[0].losses.mean())
    state = SearchState(best=original, best_loss=loss)
    while not state.is_over and len(state.rounds) < options.rounds:
        state = run_round(state, candidates, judged.targets, score)
    figures: dict[str, Any] = {
        "verdict": "no_improvement",
        "rounds": len(state.rounds),
        "validation": [len(judged), loss, state.best_loss],
    }
    if state.best == original:
        return figures
    before, after = reader.probabilities([original, state.best], evaluation)
    targets, contexts = evaluation.targets, evaluation.context_places
    proof = prove(before, after, targets, contexts, shares_of(training.targets), names)
    test = proof.test
    return figures | {
        "verdict": proof.verdict,
        "reasons": proof.reasons,
        "rows": test.rows,
        "loss": [test.original_loss, test.tuned_loss],
        "gain": [test.gain, test.gain_low, test.gain_high],
        "noise": proof.noise_band,
        "accuracy": [test.original_accuracy, test.tuned_accuracy],
        "label_shares_loss": test.label_shares_loss,
        "question": state.best.question,
        "descriptions": dict(zip(names, state.best.descriptions, strict=True)),
    }


def _sides(path: Path, n_train: int, n_evaluate: int) -> tuple[list[Any], list[Any]]:
    """Return training and evaluation rows: of their own files, or both of the test file."""
    of_training = path.with_name(path.name.replace(_TEST, _TRAIN))
    if not of_training.is_file():
        rows = _rows(path)
        return rows[n_evaluate : n_evaluate + n_train], rows[:n_evaluate]
    training = _rows(of_training)
    seen = {json.dumps(row["context"]) for row in training}
    decision = training[0]["decisions"][0]
    return training[:n_train], [
        {**row, "decisions": [decision]}
        for row in _rows(path)
        if json.dumps(row["context"]) not in seen
    ][:n_evaluate]


def _rows(path: Path) -> list[dict[str, Any]]:
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
    return unique


def _shuffled(sides: Sequence[list[dict[str, Any]]], seed: int) -> list[list[dict[str, Any]]]:
    """Return each side with its labels dealt out anew."""
    dealt = []
    for rows in sides:
        targets = [row["targets"] for row in rows]
        random.Random(seed).shuffle(targets)
        dealt.append(
            [{**row, "targets": target} for row, target in zip(rows, targets, strict=True)]
        )
    return dealt


def _asked(rows: Sequence[dict[str, Any]], decision: Decision) -> AskedRows:
    contexts = tuple(render_context(row["context"]) for row in rows)
    targets = [row["targets"][decision.id] for row in rows]
    return AskedRows(
        indexes=tuple(range(len(rows))),
        contexts=contexts,
        keys=tuple(hashlib.sha256(one.encode()).hexdigest() for one in contexts),
        targets=np.array(
            [[float(one.get(name, 0.0)) for name in decision.outcomes.names] for one in targets]
        ),
    )


def _table(found: list[dict[str, Any]]) -> str:
    header = ["task", "verdict", "log loss", "tuned", "gain (95 %)", "right", "tuned", "shares"]
    body = []
    for one in found:
        line = [one["task"], one["verdict"]]
        if "loss" in one:
            gain, low, high = one["gain"]
            line += [
                *(f"{loss:.3f}" for loss in one["loss"]),
                f"{gain:.3f} ({low:.3f} to {high:.3f})",
                *(f"{share:.3f}" for share in one["accuracy"]),
                f"{one['label_shares_loss']:.3f}",
            ]
        body.append(line + [""] * (len(header) - len(line)))
    return text_table(header, body)


if __name__ == "__main__":
    sys.exit(main())
