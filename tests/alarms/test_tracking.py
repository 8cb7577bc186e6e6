"""Evidence: false alarms, detections, clearing, and the sums kept by a look."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from steelyard.alarms import contexts
from steelyard.alarms.budget import WATCHES, alpha, threshold
from steelyard.alarms.tracking import OTHER, Stream, add, evidence, figures_of
from steelyard.calibration import sequences

SHARES = (0.55, 0.3, 0.1, 0.05)


def units(rng, shares, n, p_top=0.8):
    tops = rng.choice(len(shares), p=shares, size=n)
    tops_p = rng.beta(20 * p_top, 20 * (1 - p_top), size=n)
    return [
        {f"outcome:{top}": 1.0, "abstained": float(p < 0.6), "p_top": float(p)}
        for top, p in zip(tops, tops_p, strict=True)
    ]


def count(stream, values, begins=0):
    """Count values, storing the stream between any two; return the moved metrics, and after how many values."""
    moves = []
    for n, one in enumerate(values, begins + 1):
        moves += [(n, move) for move in add(stream, n, one, decisions=1, false_alarms=0.01)]
        if n % 777 == 0:
            again = msgspec.json.decode(msgspec.json.encode(stream), type=Stream)
            assert again == stream
    return moves


def test_the_parts_of_the_chance_sum_to_it():
    assert sum(alpha(watch) for watch in WATCHES) == pytest.approx(0.01)
    assert threshold("accuracy", decisions=2) > threshold("accuracy")


def test_a_stream_raises_once_and_clears_when_the_shares_are_back():
    rng = np.random.default_rng(1)
    stream = Stream("answers", "intent", figures_of(units(rng, SHARES, 2_000), ["abstained"]))
    assert OTHER in stream.figures
    assert count(stream, units(rng, SHARES, 3_000)) == []
    found, _, _ = evidence(stream, "shares")
    assert found < 1
    # A fifth of the others went to the last.
    [(n, move)] = count(stream, units(rng, (0.44, 0.24, 0.08, 0.24), 1_000), 3_000)
    assert (move.watch, move.is_raised, move.estimate.figure) == ("shares", True, "outcome:3")
    assert 3_050 <= n <= 3_500
    assert move.estimate.low > move.estimate.reference
    assert 0.1 < move.estimate.variation[0] < 0.4
    [(n, move)] = count(stream, units(rng, SHARES, 2_000), 4_000)
    assert not move.is_raised
    assert 4_300 <= n <= 5_500


def test_means_and_outcomes_that_are_new_are_found():
    rng = np.random.default_rng(2)
    figures = figures_of(units(rng, SHARES, 1_000))
    less_sure = units(rng, SHARES, 1_500, p_top=0.72)
    moves = count(Stream("answers", "intent", dict(figures)), less_sure)
    assert {move.watch for _, move in moves} >= {"top_probability"}
    new = [*units(rng, SHARES, 300), *[{"outcome:new": 1.0, "p_top": 0.8}] * 20]
    [(_, move)] = count(Stream("answers", "intent", dict(figures)), [*new, *units(rng, SHARES, 30)])
    assert move.estimate.figure == OTHER


def test_contexts_that_are_longer_or_of_other_words_are_found_and_clear():
    rng = np.random.default_rng(3)

    def texts(n, words, length):
        return [
            " ".join(f"w{word}" for word in rng.integers(words, size=rng.poisson(length) + 1))
            for _ in range(n)
        ]

    held = contexts.contexts_of(texts(1_000, 500, 30))

    def moves(found):
        return [
            (move.figure, move.is_raised)
            for move in contexts.gather(held, 1.0, found, false_alarms=0.01)
        ]

    assert contexts.contexts_of(["few"] * 99) is None
    assert moves(texts(2_000, 500, 30)) == []
    assert moves(texts(200, 500, 60)) == [("length", True)]
    assert moves(texts(400, 500, 30))[0][1] is False
    assert moves(texts(200, 900, 30)) == [("new_words", True)]


def test_confidence_sequences_hold_at_all_times_at_once():
    rng = np.random.default_rng(4)
    missed = [0, 0]
    for _ in range(200):
        hits = (rng.random(1_000) < 0.1).cumsum()
        values = rng.beta(8, 2, size=1_000)
        for n in range(50, 1_001, 50):
            low, high = sequences.share_interval(hits[n - 1], n)
            if not low <= 0.1 <= high:
                missed[0] += 1
                break
        for n in range(50, 1_001, 50):
            low, high = sequences.mean_interval(values[:n].mean(), values[:n].var(), n)
            if not low <= 0.8 <= high:
                missed[1] += 1
                break
    assert max(missed) <= 15
