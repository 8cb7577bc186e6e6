"""Parameters fitted on the tasks that the base model was not trained on.

First the weight of the similarity channel: training tasks say too little about how far to trust
similarity on a new one. Then the temperatures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.temperature import (
    TemperatureTable,
    fit_temperature_table,
    outcome_bucket,
)
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, render_context
from steelyard.scoring.engine import FLOAT32, Engine
from steelyard.scoring.onnx import OnnxScorer
from steelyard.scoring.passes import KINDS
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.examples import WordedDecision
from steelyard.training.shape import Shape
from steelyard_base_recipe.augment import plain_examples
from steelyard_base_recipe.graph import build
from steelyard_base_recipe.mixture import Mixture, MixtureRow

#: Least decisions for a temperature of a bucket's own; a bucket with fewer takes its kind's.
MIN_DECISIONS = 150
#: Rows of a source, so that no task decides a bucket alone.
ROWS_PER_SOURCE = 120
#: Sizes to which label lists are also padded, for the buckets that few tasks reach.
PADDED_TO = (10, 25, 60, 120)
#: Weights of similarity that are tried.
SIMILARITY_WEIGHTS = (0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 30.0, 36.0, 44.0)
#: Relative difference in log loss that does not count: with 0.01 the second model kept too little
#: similarity, and said "other" twice as often.
NEARLY_AS_GOOD = 0.002
BATCH = 64

Weights = Mapping[str, NDArray[np.generic]]
Logits = list[NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """Requests on tasks not trained on, and the labels of each of their decisions."""

    requests: tuple[RenderedRequest, ...]
    kinds: tuple[str, ...]
    targets: tuple[NDArray[np.float64], ...]
    tasks: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """Count the decisions of each kind and outcome-count bucket."""
        pairs = zip(self.kinds, self.targets, strict=True)
        counts = Counter(f"{kind} {outcome_bucket(len(target))}" for kind, target in pairs)
        return dict(sorted(counts.items()))

    def of_kinds(self, kinds: Sequence[str]) -> CalibrationSet:
        """Return the decisions of some kinds, each as a request of its own."""
        contexts = [request for request in self.requests for _ in request.decisions]
        decisions = [decision for request in self.requests for decision in request.decisions]
        places = [i for i, kind in enumerate(self.kinds) if kind in kinds]
        return CalibrationSet(
            tuple(replace(contexts[i], decisions=(decisions[i],)) for i in places),
            tuple(self.kinds[i] for i in places),
            tuple(self.targets[i] for i in places),
            tuple(self.tasks[i] for i in places),
        )


def calibration_set(
    validation: Mapping[str, Sequence[MixtureRow]], mixture: Mixture, seed: int = 0
) -> CalibrationSet:
    """Choose at most ``ROWS_PER_SOURCE`` rows of each source.

    A single decision is asked with its own outcomes and again with wrong labels of other tasks
    added.
    """
    rng = np.random.default_rng(seed)
    requests: list[RenderedRequest] = []
    targets: list[NDArray[np.float64]] = []
    tasks: list[str] = []
    for source, rows in validation.items():
        for index in rng.permutation(len(rows))[:ROWS_PER_SOURCE]:
            row = rows[index]
            examples = [
                version
                for example in plain_examples(row)
                for version in _versions(example, mixture, rng)
            ]
            decisions = tuple(example.decision for example in examples)
            requests.append(RenderedRequest(render_context(row.context), decisions))
            targets.extend(np.asarray(example.targets) for example in examples)
            tasks.extend(source for _ in examples)
    kinds = tuple(decision.kind for request in requests for decision in request.decisions)
    return CalibrationSet(tuple(requests), kinds, tuple(targets), tuple(tasks))


def fit_similarity(
    weights: Weights, shape: Shape, tokenizer: Tokenizer, chosen: CalibrationSet
) -> tuple[NDArray[np.float32], dict[str, dict[str, float]]]:
    """Choose the similarity channel's weight for each of ``KINDS``."""
    without = _logits_at(0.0, weights, shape, tokenizer, chosen)
    similarity = [
        with_similarity - at_zero
        for with_similarity, at_zero in zip(
            _logits_at(1.0, weights, shape, tokenizer, chosen), without, strict=True
        )
    ]
    best = np.array(weights["similarity_weight"], np.float32)
    losses: dict[str, dict[str, float]] = {}
    for index, kind in enumerate(KINDS):
        own = [i for i, k in enumerate(chosen.kinds) if k == kind]
        if not any(np.ptp(similarity[i]) > 0 for i in own):
            continue
        tried = {
            weight: _loss(
                kind,
                [without[i] + np.float32(weight) * similarity[i] for i in own],
                [chosen.targets[i] for i in own],
                [chosen.tasks[i] for i in own],
            )
            for weight in SIMILARITY_WEIGHTS
        }
        best[index] = closest_good(tried, float(best[index]))
        losses[kind] = {f"{weight:g}": round(loss, 4) for weight, loss in tried.items()}
    return best, losses


def closest_good(losses: Mapping[float, float], trained: float) -> float:
    """Return the weight closest to the trained one among those nearly as good as the best.

    The set-attention layer was trained beside the trained weight, and a dozen tasks say little:
    a better weight must be clearly better.
    """
    bound = min(losses.values()) * (1.0 + NEARLY_AS_GOOD)
    good = [weight for weight, loss in losses.items() if loss <= bound]
    return min(good, key=lambda weight: abs(weight - trained))


def fit_temperatures(scorer: Scorer, chosen: CalibrationSet) -> TemperatureTable:
    """Fit one temperature per kind and outcome-count bucket."""
    return fit_temperature_table(
        chosen.kinds,
        logits_of(scorer, chosen.requests),
        chosen.targets,
        min_decisions=MIN_DECISIONS,
    )


def _loss(kind: str, logits: Logits, targets: list[NDArray[np.float64]], tasks: list[str]) -> float:
    table = fit_temperature_table(
        [kind] * len(logits), logits, targets, min_decisions=MIN_DECISIONS
    )
    by_task: dict[str, list[float]] = {}
    for row, target, task in zip(logits, targets, tasks, strict=True):
        loss = -float(target @ table.log_probabilities(row, kind))
        by_task.setdefault(task, []).append(loss)
    return float(np.mean([np.mean(values) for values in by_task.values()]))


def _logits_at(
    similarity: float, weights: Weights, shape: Shape, tokenizer: Tokenizer, chosen: CalibrationSet
) -> Logits:
    changed = {**weights, "similarity_weight": np.full(len(KINDS), similarity, np.float32)}
    engine = Engine(build(shape).SerializeToString(), changed, precision=FLOAT32)
    scorer = OnnxScorer(engine, tokenizer, name="calibration", engine_name="calibration")
    return logits_of(scorer, chosen.requests)


def _versions(
    example: WordedDecision, mixture: Mixture, rng: np.random.Generator
) -> list[WordedDecision]:
    """Return a decision as it is, and for a choice also one with foreign labels added."""
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
    return [example, WordedDecision(decision, example.targets + (0.0,) * len(added))]


def logits_of(scorer: Scorer, requests: Sequence[RenderedRequest]) -> Logits:
    """Return the logits of every decision, in the order of the requests."""
    return [
        scored.logits
        for start in range(0, len(requests), BATCH)
        for decisions in scorer.score(requests[start : start + BATCH])
        for scored in decisions
    ]
