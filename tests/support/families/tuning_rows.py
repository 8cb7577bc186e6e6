"""Rows that a head can learn from: the words of a context say which outcome is right."""

from __future__ import annotations

import hashlib
import random

import numpy as np

from steelyard.decisions.rendering import RenderedDecision
from steelyard.scoring.hashing import HashingScorer
from steelyard.trainer.rows import TuningRow

TEAM = RenderedDecision("single", "Which team?", ("support", "billing", "sales"))
LEVEL = RenderedDecision("ordinal", "How urgent?", ("low", "middle", "high"))
WORDS = {
    "billing": ["invoice", "refund", "charge", "payment"],
    "sales": ["quote", "demo", "upgrade", "contract"],
    "support": ["crash", "error", "login", "broken"],
}
FILLER = ["please", "today", "the", "our", "about", "again", "account", "it", "was", "with"]
WIDTH = 12


class WordScorer(HashingScorer):
    """The test double, with vectors of texts: a random direction a word, summed."""

    def __init__(self, key: str = "") -> None:
        super().__init__(key)
        self.n_embedded = 0
        self.n_scored = 0

    def embed(self, texts):
        self.n_embedded += len(texts)
        return np.stack([embed_words(text) for text in texts])

    def score(self, requests):
        self.n_scored += len(requests)
        return super().score(requests)


def embed_words(text: str) -> np.ndarray:
    total = np.zeros(WIDTH)
    for word in text.lower().replace(".", "").split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        total += np.random.default_rng(seed).normal(size=WIDTH)
    length = np.linalg.norm(total)
    return (total / (length or 1.0)).astype(np.float32)


def team_rows(n_rows: int, seed: int = 0, *, noise: float = 0.1, soft: bool = False):
    """Rows whose words tell the team; a share of the labels is drawn at random."""
    rng = random.Random(f"team {seed}")
    rows = []
    for number in range(n_rows):
        team = rng.choice(list(WORDS))
        words = [rng.choice(WORDS[team]), rng.choice(WORDS[team])]
        words += [rng.choice(FILLER) for _ in range(5)]
        rng.shuffle(words)
        told = team if rng.random() > noise else rng.choice(list(WORDS))
        right = TEAM.outcomes.index(told)
        labels = np.full(3, 0.1 if soft else 0.0)
        labels[right] = 0.8 if soft else 1.0
        rows.append(make_row(f"{' '.join(words)} {number}.", TEAM, labels))
    return rows


def reward_rows(n_rows: int, seed: int = 0):
    """The same with rewards: the right team earns most, and support never earns nothing."""
    rows = []
    for row in team_rows(n_rows, seed, noise=0.0):
        rewards = np.where(row.labels > 0, 10.0, -2.0)
        rewards[TEAM.outcomes.index("support")] += 3.0
        rows.append(make_row(row.context, TEAM, rewards))
    return rows


def make_row(context: str, decision: RenderedDecision, labels, *, is_seen: bool = False):
    name = hashlib.sha256(context.encode()).hexdigest()
    return TuningRow(context, name, decision, np.asarray(labels, np.float64), is_seen)


def permuted(row: TuningRow, order: list[int]) -> TuningRow:
    """The same row with its outcomes in another order."""
    decision = row.decision
    outcomes = tuple(decision.outcomes[at] for at in order)
    return make_row(
        row.context, RenderedDecision(decision.kind, decision.question, outcomes), row.labels[order]
    )
