"""Stored answers of a model that drifts, put into the state as they are when they were settled."""

from __future__ import annotations

import functools
import zlib

import msgspec
import numpy as np

from steelyard.decision_log.store import StoredDecision, insert_decision, put_feedback

SHARES = {"billing": 0.6, "support": 0.3, "other": 0.1}
DRIFTED = {"billing": 0.4, "support": 0.2, "other": 0.4}


def about(rng, n, topics, *, words=30):
    """Contexts of topics: of the words of one of them, or of all words where it is "both"."""
    found = []
    for topic in rng.choice(np.array(topics, dtype=object), size=n):
        first, many = (0, 40) if topic == "both" else (20 * topic, 20)
        drawn = first + rng.integers(many, size=rng.poisson(words) + 1)
        found.append(" ".join(f"w{word}" for word in drawn))
    return found


def embed_words(texts):
    """Unit vectors of texts: the sum of a vector of each word."""
    vectors = np.zeros((len(texts), 64), dtype=np.float32)
    for place, text in enumerate(texts):
        for word in text.split():
            vectors[place] += _word_vector(word)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@functools.cache
def _word_vector(word):
    rng = np.random.default_rng(zlib.crc32(word.encode()))
    return rng.normal(size=64).astype(np.float32)


def answers(
    n, shares, *, at, seed=0, model="router", version="router@1", p_top=0.8, words=50, topics=None
):
    """Stored answers, a second apart, and the outcome that came true of each."""
    rng = np.random.default_rng(seed)
    names = list(shares)
    found = []
    for place in range(n):
        top = names[rng.choice(len(names), p=list(shares.values()))]
        p = float(rng.beta(40 * p_top, 40 * (1 - p_top)))
        others = {name: (1 - p) / (len(names) - 1) for name in names if name != top}
        result = {
            "kind": "single",
            "probabilities": {top: p, **others},
            "top": top,
            "p_top": p,
            "action": top,
        }
        if topics is None:
            drawn = rng.integers(300, size=rng.poisson(words) + 1)
            context = " ".join(f"w{word}" for word in drawn)
        else:
            (context,) = about(rng, 1, topics)
        stored = StoredDecision(
            id=f"dec_{seed}_{place:06}",
            account_id="local",
            created_at=at + place,
            model=model,
            version=version,
            request=msgspec.json.encode({"context": context, "decisions": []}),
            results=msgspec.json.encode({"team": result}),
            outcome_names={"team": names},
            total_ms=float(rng.gamma(4, 5)),
        )
        truth = top if rng.random() < p else names[(names.index(top) + 1) % len(names)]
        found.append((stored, truth))
    return found


def store(state, found):
    """Put answers into the state."""

    def write(connection):
        for stored, _ in found:
            insert_decision(connection, stored)

    state.write_now(write)


def tell(state, found, at):
    """Put observed outcomes of answers into the state."""

    def write(connection):
        for stored, truth in found:
            put_feedback(connection, stored.id, {"team": truth}, recorded_at=at)

    state.write_now(write)
