"""Scored decisions made up for tests, and the same measures read as plain loops."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from steelyard.decisions.wire import Kind
from steelyard.evaluations.measures.outcomes import outcome_table
from steelyard.evaluations.measures.records import (
    measure_records,
    records_from_columns,
)
from steelyard.proof.differences import Bootstrap

#: Fewer resamples where the interval itself is not what a test is about.
QUICK = Bootstrap(n_resamples=200)

DECISIONS = {
    "spam": ("binary", ("yes", "no")),
    "topic": ("single", ("billing", "delivery", "other")),
    "tone": ("ordinal", ("0", "1", "2", "3", "4")),
}


@dataclass(frozen=True, slots=True)
class ScoredRecord:
    """One decision as a model scored it, beside its label: targets or rewards.

    Numbers are one an outcome, in the order of ``outcomes``; the records of one context stand or
    fall together.
    """

    context_sha256: str
    decision_id: str
    kind: Kind
    outcomes: tuple[str, ...]
    probabilities: tuple[float, ...]
    targets: tuple[float, ...] | None = None
    rewards: tuple[float, ...] | None = None


def records_from_rows(rows):
    """Put records into columns: all with targets, or all with rewards."""
    has_targets = all(row.rewards is None for row in rows)
    return records_from_columns(
        contexts=[row.context_sha256 for row in rows],
        decision_ids=[row.decision_id for row in rows],
        kinds=[row.kind for row in rows],
        outcomes=[row.outcomes for row in rows],
        probabilities=[row.probabilities for row in rows],
        labels=[row.targets if has_targets else row.rewards for row in rows],
        supervision="targets" if has_targets else "rewards",
    )


def distribution(rng, n):
    values = rng.dirichlet(np.full(n, 0.8))
    return tuple((values / values.sum()).tolist())


def make_rows(seed=0, n_contexts=30, *, supervision="targets", decisions=DECISIONS, soft=True):
    """Return rows of every decision on each context, their labels made up too."""
    rng = np.random.default_rng(seed)
    rows = []
    for context in range(n_contexts):
        for decision_id, (kind, outcomes) in decisions.items():
            n = len(outcomes)
            targets = rewards = None
            if supervision == "targets":
                is_soft = soft and rng.random() < 0.3
                targets = (
                    distribution(rng, n) if is_soft else tuple(np.eye(n)[rng.integers(n)].tolist())
                )
            else:
                rewards = tuple(rng.integers(-2, 3, size=n).astype(float).tolist())
            rows.append(
                ScoredRecord(
                    f"sha{context:05d}",
                    decision_id,
                    kind,
                    outcomes,
                    distribution(rng, n),
                    targets,
                    rewards,
                )
            )
    return rows


def table_of(rows):
    """The rows of one decision by outcome."""
    records = records_from_rows(rows)
    return outcome_table(records, measure_records(records), np.arange(len(rows)))


def rescore(rows, seed):
    """Return the same decisions with other probabilities: another model."""
    rng = np.random.default_rng(seed)
    return [replace(row, probabilities=distribution(rng, len(row.outcomes))) for row in rows]


def sharpen(rows, share):
    """Move probability towards the label's largest outcome: a better model for a share above 0."""
    moved = []
    for row in rows:
        label = row.targets or row.rewards
        best = label.index(max(label))
        probabilities = tuple(
            (1 - share) * p + share * (index == best) for index, p in enumerate(row.probabilities)
        )
        moved.append(replace(row, probabilities=probabilities))
    return moved


def make_records(*args, **kwargs):
    return records_from_rows(make_rows(*args, **kwargs))


def row_measures(row):
    """Measure one row, as the definitions read."""
    p = row.probabilities
    top = p.index(max(p))
    if row.targets is not None:
        t = row.targets
        return {
            "accuracy": float(top == t.index(max(t))),
            "loss": -sum(b * math.log(max(a, 1e-6)) for a, b in zip(p, t, strict=True)),
            "brier": sum((a - b) ** 2 for a, b in zip(p, t, strict=True)),
        }
    r = row.rewards
    expected = sum(a * b for a, b in zip(p, r, strict=True))
    if max(r) == min(r):
        return {"expected_reward": expected}
    return {
        "expected_reward": expected,
        "scaled_reward": (expected - min(r)) / (max(r) - min(r)),
        "picked_best": float(r[top] == max(r)),
    }


def ece_by_loops(rows):
    bins = {}
    for row in rows:
        top = max(row.probabilities)
        index = next(i for i in range(10) if top <= (i + 1) / 10)
        bins.setdefault(index, []).append((top, row_measures(row)["accuracy"]))
    gaps = [abs(sum(p - hit for p, hit in held)) for held in bins.values()]
    return sum(gaps) / len(rows)


def mean(values):
    values = list(values)
    return sum(values) / len(values)
