"""Temperatures of the base model, fitted on the tasks that it was not trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.temperature import (
    TemperatureTable,
    fit_temperature_table,
    outcome_bucket,
)
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, render_context
from steelyard.scoring.protocol import Scorer
from steelyard.training.base.augment import Example, plain
from steelyard.training.base.mixture import Mixture, Row

#: Least decisions for a temperature of a bucket's own; a bucket with fewer takes its kind's.
MIN_DECISIONS = 150
#: Rows of a source, so that no task decides a bucket alone.
ROWS_PER_SOURCE = 400
#: Sizes to which label lists are also padded, for the buckets that few tasks reach.
PADDED_TO = (10, 25, 60, 120)
BATCH = 64


def fit_temperatures(
    scorer: Scorer, validation: dict[str, list[Row]], mixture: Mixture, seed: int = 0
) -> tuple[TemperatureTable, dict[str, int]]:
    """Fit one temperature per kind and outcome-count bucket.

    Every source gives at most ``ROWS_PER_SOURCE`` rows. A single decision is asked with its own
    outcomes and again with wrong labels of other tasks added.

    Returns
    -------
    TemperatureTable
    dict of str to int
        Decisions in each kind and bucket.
    """
    rng = np.random.default_rng(seed)
    requests: list[RenderedRequest] = []
    targets: list[NDArray[np.float64]] = []
    for rows in validation.values():
        for index in rng.permutation(len(rows))[:ROWS_PER_SOURCE]:
            row = rows[index]
            examples = [
                version
                for decision in row.decisions
                if decision["id"] in row.targets
                for version in _versions(plain(decision, row.targets[decision["id"]]), mixture, rng)
            ]
            decisions = tuple(example.decision for example in examples)
            requests.append(RenderedRequest(render_context(row.context), decisions))
            targets.extend(np.asarray(example.targets) for example in examples)
    kinds = [decision.kind for request in requests for decision in request.decisions]
    table = fit_temperature_table(
        kinds, _logits(scorer, requests), targets, min_decisions=MIN_DECISIONS
    )
    counts = Counter(
        f"{kind} {outcome_bucket(len(target))}" for kind, target in zip(kinds, targets, strict=True)
    )
    return table, dict(sorted(counts.items()))


def _versions(example: Example, mixture: Mixture, rng: np.random.Generator) -> list[Example]:
    """Give a decision as it is, and for a choice also one with foreign labels added."""
    if example.decision.kind != "single":
        return [example]
    size = int(PADDED_TO[int(rng.integers(len(PADDED_TO)))])
    own = example.decision.outcomes
    sources = list(mixture.labels)
    pool = dict.fromkeys(
        label
        for i in rng.integers(len(sources), size=4)
        for label in mixture.labels[sources[int(i)]]
    )
    labels = [label for label in pool if label not in own]
    n = min(max(size - len(own), 0), len(labels))
    added = tuple(labels[i] for i in rng.permutation(len(labels))[:n])
    if not added:
        return [example]
    decision = RenderedDecision("single", example.decision.question, own + added)
    return [example, Example(decision, example.targets + (0.0,) * len(added), ())]


def _logits(scorer: Scorer, requests: Sequence[RenderedRequest]) -> list[NDArray[np.float32]]:
    return [
        scored.logits
        for start in range(0, len(requests), BATCH)
        for decisions in scorer.score(requests[start : start + BATCH])
        for scored in decisions
    ]
