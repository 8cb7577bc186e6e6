"""The rows of one decision as arrays, outcomes in canonical order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steelyard.decisions.rendering import RenderedDecision
from steelyard.scoring.heads import canonical_order, fingerprint
from steelyard.scoring.ngrams import NgramTable, fit_table
from steelyard.trainer.features import Features
from steelyard.trainer.rows import TuningRow

Floats = NDArray[np.float32]

#: N-grams of a table, at most.
MOST_COLUMNS = 65_536
#: N-grams times outcomes, at most, for the sake of memory while fitting and on disk.
MOST_WEIGHTS = 1_500_000
#: With fewer contexts every n-gram counts; with more, those that two contexts have.
_FEW_CONTEXTS = 50
#: Rewards of a row are equal when they differ by no more than this share of its largest.
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class DecisionData:
    """One decision's n rows."""

    fingerprint: str
    decision: RenderedDecision
    contexts: list[str]
    names: list[str]
    targets: Floats  # (n, n_outcomes); of rewards, all on the best outcomes
    rewards: Floats | None  # (n, n_outcomes), scaled to 0 to 1 in a row
    is_seen: NDArray[np.bool_]
    vectors: Floats | None  # (n, width)
    outcome_vectors: Floats | None  # (n_outcomes, width)
    ngrams: csr_array  # (n, n_columns)
    table: NgramTable
    static: Floats | None  # the vector of each column, (n_columns, n_components); zeros of no word
    is_scored: NDArray[np.bool_]  # whether the base read the row
    base: Floats | None  # logits (n, n_outcomes); zeros where it is not scored
    markers: Floats | None  # (n, n_outcomes, width); zeros where it is not scored
    evidence: Floats | None = None  # (n, n_outcomes + 1); a reader reads every row, or none

    @property
    def n_outcomes(self) -> int:
        """How many outcomes the decision has."""
        return len(self.decision.outcomes)


def group_rows(rows: Sequence[TuningRow]) -> dict[str, list[int]]:
    """Return the places of every decision's rows, by fingerprint, in the order of the fingerprints."""
    places: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        places[fingerprint(row.decision)].append(i)
    return dict(sorted(places.items()))


def decision_data(
    rows: Sequence[TuningRow], places: Sequence[int], features: Features, *, has_rewards: bool
) -> DecisionData:
    """Collect the rows of one decision."""
    if has_rewards:
        places = [i for i in places if tells_apart(rows[i].labels)] or places
    places = sorted(places, key=lambda i: (rows[i].context_sha256, rows[i].labels.tolist()))
    members = [rows[i] for i in places]
    orders = [canonical_order(row.decision) for row in members]
    labels = np.array([row.labels[order] for row, order in zip(members, orders, strict=True)])
    first = members[0].decision
    outcomes = tuple(first.outcomes[at] for at in orders[0])
    decision = RenderedDecision(first.kind, first.question, outcomes)
    contexts = [row.context for row in members]
    distinct = sorted(set(contexts))
    most = min(MOST_COLUMNS, MOST_WEIGHTS // len(outcomes))
    table = fit_table(distinct, most, least_texts=1 if len(distinct) < _FEW_CONTEXTS else 2)
    static = None
    if features.static is not None:
        table, static = features.static.extend(table, len(distinct), most)
    has_vectors = features.width > 0
    scored = [features.base.get(i) for i in places]
    is_scored = np.array([score is not None for score in scored])
    base = markers = None
    if is_scored.any():
        base = np.zeros(labels.shape, np.float32)
        width = max(score.marker_vectors.shape[1] for score in scored if score is not None)
        if width:
            markers = np.zeros((*labels.shape, width), np.float32)
        for at, (score, order) in enumerate(zip(scored, orders, strict=True)):
            if score is not None:
                base[at] = score.logits[order]
                if markers is not None:
                    markers[at] = score.marker_vectors[order]
    evidence = None
    if all(i in features.evidence for i in places):
        pairs = zip(places, orders, strict=True)
        evidence = np.stack([features.evidence[i][[*order, -1]] for i, order in pairs])
    targets, rewards = _labels(labels, has_rewards=has_rewards)
    return DecisionData(
        fingerprint=fingerprint(decision),
        decision=decision,
        contexts=contexts,
        names=[row.context_sha256 for row in members],
        targets=targets,
        rewards=rewards,
        is_seen=np.array([row.is_seen for row in members]),
        vectors=_stack(features, contexts) if has_vectors else None,
        outcome_vectors=_stack(features, outcomes) if has_vectors else None,
        ngrams=ngram_matrix(contexts, table),
        table=table,
        static=static,
        is_scored=is_scored,
        base=base,
        markers=markers,
        evidence=evidence,
    )


def tells_apart(rewards: NDArray[np.float64]) -> bool:
    """Return whether a row's outcomes earn differently, whatever the unit of its rewards."""
    halves = rewards / 2
    return bool(np.ptp(halves) > _EQUAL * np.abs(halves).max())


def _labels(labels: NDArray[np.float64], *, has_rewards: bool) -> tuple[Floats, Floats | None]:
    if not has_rewards:
        return (labels / labels.sum(axis=1, keepdims=True)).astype(np.float32), None
    halves = labels / 2  # the difference of the largest floats is none
    low, high = halves.min(axis=1, keepdims=True), halves.max(axis=1, keepdims=True)
    least = _EQUAL * np.abs(halves).max(axis=1, keepdims=True)
    is_best = (high - halves <= least).astype(np.float32)
    span = high - low
    scaled = np.divide(halves - low, span, out=np.zeros_like(halves), where=span > least)
    return is_best / is_best.sum(axis=1, keepdims=True), scaled.astype(np.float32)


def _stack(features: Features, texts: Sequence[str]) -> Floats:
    return np.stack([features.vectors[text] for text in texts])


def ngram_matrix(texts: Sequence[str], table: NgramTable) -> csr_array:
    """Return the vectors of texts by a table, (n, n_columns)."""
    rows = table.vectors(texts)
    ends = np.cumsum([0, *(len(places) for places, _ in rows)])
    places = np.concatenate([places for places, _ in rows]).astype(np.int32)
    values = np.concatenate([values for _, values in rows])
    return csr_array((values, places, ends), shape=(len(texts), len(table)))
