"""A ladder beside the heads that read the base model: decisions a CPU second, and points lost.

For each task the commonest wording of its first decision is learned from some rows, of which a fifth is
held out and certifies from which top probability words alone may answer, as in a fine-tune; both are
then asked other rows.

``python tests/benchmarks/ladder.py --data DIR [--tasks NAME ...] [--sizes 200 2000 0] [--rows 1000]``

A size of 0 takes every row. The data are not part of this repository; without ``--data`` it is skipped.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from words import print_figures

from steelyard.decisions.rendering import RenderedRequest
from steelyard.proof.differences import Bootstrap, Paired
from steelyard.scoring.heads import Heads
from steelyard.scoring.ladder import Ladder
from steelyard.scoring.novelty import TrainingTexts, word_vectors
from steelyard.scoring.tuned import TunedScorer
from steelyard.trainer.features import compute_features
from steelyard.trainer.fitting import WORDS_ALONE, fit_heads
from steelyard.trainer.ladder import certify_words
from steelyard.trainer.rows import TuningRow

#: Of every so many rows one is held out, as a dataset does unless it is asked otherwise.
_HELD_OUT = 5
#: Requests of a call, and requests that are asked one at a time.
_TOGETHER, _ALONE = 100, 200
_NOTHING = 2.0  # no top probability is as high
_HEAD = (
    "task,rows,words from,words answer,right: words,base,ladder,change in points,"
    "decisions/CPU s: base,ladder,times,alone: base ms,ladder ms,times,strange by words"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each task and number of rows."""
    return print_figures(__doc__, _HEAD, compare, arguments)


def compare(
    name: str,
    rows: Sequence[TuningRow],
    tests: Sequence[TuningRow],
    strange: Sequence[str],
    scorer: Any,
    seed: int,
) -> list[str]:
    """Return the line of a task: both on the same rows, in turns."""
    held_out, train = rows[: len(rows) // _HELD_OUT], rows[len(rows) // _HELD_OUT :]
    heads, words = fit(train, scorer, seed)
    texts = TrainingTexts.of(
        (row.context for row in train),
        (row.context for row in held_out),
        word_vectors,
        of_words=True,
    )
    base, by_words = TunedScorer(heads, scorer), TunedScorer(words, scorer)
    kind = tests[0].decision.kind
    ladder = certified(Ladder(words, texts, {kind: _NOTHING}), held_out, base, by_words)
    climbing = TunedScorer(heads, scorer, ladder=ladder)
    models = {"words": by_words, "base": base, "ladder": climbing}
    requests = [RenderedRequest(row.context, (row.decision,)) for row in tests]
    labels = [int(row.labels.argmax()) for row in tests]
    scored, together = in_turns(models, requests, _TOGETHER)
    _, alone = in_turns(models, requests[:_ALONE], 1)
    right = {
        each: np.array([a.logits.argmax() == y for [a], y in zip(answers, labels, strict=True)])
        for each, answers in scored.items()
    }
    others = climbing.score([RenderedRequest(text, (tests[0].decision,)) for text in strange])
    pairs = Paired(
        right["base"][:, None].astype(float),
        right["ladder"][:, None].astype(float),
        np.arange(len(tests)),
    )
    change = pairs.percentile_difference(Bootstrap(seed=seed))
    return [
        name,
        f"{len(rows):,}",
        "none" if ladder.thresholds[kind] == _NOTHING else f"{ladder.thresholds[kind]:.3f}",
        f"{by_words_share(scored['ladder']):.3f}",
        *(f"{right[each].mean():.3f}" for each in models),
        f"{change.change * 100:+.1f} [{change.low * 100:+.1f} {change.high * 100:+.1f}]",
        f"{1000 / together['base']:,.0f}",
        f"{1000 / together['ladder']:,.0f}",
        f"{together['base'] / together['ladder']:.1f}",
        f"{alone['base']:.2f}",
        f"{alone['ladder']:.2f}",
        f"{alone['base'] / alone['ladder']:.1f}",
        f"{by_words_share(others):.2f}",
    ]


def in_turns(
    models: Mapping[str, TunedScorer], requests: Sequence[RenderedRequest], n: int
) -> tuple[dict[str, list[Any]], dict[str, float]]:
    """Return the answers of models to n requests a call, in turns, and the CPU milliseconds of each one."""
    answers: dict[str, list[Any]] = {name: [] for name in models}
    seconds = dict.fromkeys(models, 0.0)
    for model in models.values():
        model.score(requests[:2])
    for start in range(0, len(requests), n):
        for name, model in models.items():
            began = time.process_time()
            answers[name] += model.score(requests[start : start + n])
            seconds[name] += time.process_time() - began
    return answers, {name: each * 1000 / len(requests) for name, each in seconds.items()}


def fit(train: Sequence[TuningRow], scorer: Any, seed: int) -> tuple[Heads, Heads]:
    """Return the heads of a fine-tune, and those of words alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "features").mkdir()
        features = compute_features(train, scorer, folder / "features", lambda *_: None)
        fit_heads(
            train, features, method="sft", seed=seed, folder=folder, on_progress=lambda *_: None
        )
        return Heads.load(folder), Heads.load(folder / WORDS_ALONE)


def certified(
    ladder: Ladder, rows: Sequence[TuningRow], base: TunedScorer, words: TunedScorer
) -> Ladder:
    """Return the ladder with its threshold, or as it is where these rows certify none."""
    requests = [RenderedRequest(row.context, (row.decision,)) for row in rows]
    labels = np.array([row.labels.argmax() for row in rows])
    reading, by_words = (
        np.array([answer.logits.astype(float) for [answer] in model.score(requests)])
        for model in (base, words)
    )
    harm = (reading.argmax(1) == labels) & (by_words.argmax(1) != labels)
    threshold, _ = certify_words(
        np.exp(by_words).max(1),
        ladder.are_near([row.context for row in rows]),
        harm.astype(float),
        np.unique([row.context_sha256 for row in rows], return_inverse=True)[1],
    )
    if threshold is None:
        return ladder
    return Ladder(ladder.heads, ladder.texts, dict.fromkeys(ladder.thresholds, threshold))


def by_words_share(scored: Sequence[Sequence[Any]]) -> float:
    """Return the share of answers that words alone gave."""
    return float(np.mean([len(answer.route) == 1 for [answer] in scored]))


if __name__ == "__main__":
    sys.exit(main())
