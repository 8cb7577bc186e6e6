"""Distances of contexts: when texts are embedded, the size of a bank, and a topic that moves."""

from __future__ import annotations

import json
import zlib

import msgspec
import numpy as np
import pytest

from steelyard.alarms import contexts, distances
from steelyard.alarms.budget import alpha
from steelyard.alarms.distances import BANK, HELD_OUT, Bank, Distances
from steelyard.calibration.sequences import two_sample_p
from steelyard.cli.samples import sample_file
from steelyard.errors import EngineUnavailableError
from support.decisions.drifting import about, embed_words

#: What a test of 200 contexts has at most, of three figures.
BOUND = alpha("contexts") / 150


def made(texts, embed=embed_words):
    """The bank of texts, tick by tick."""
    measuring = Distances(embed, "words")
    bank = None
    while bank is None:
        measuring.tick()
        bank = measuring.bank_of("it", lambda: texts)
    return measuring, bank


def measured(measuring, bank, texts):
    """The distances of texts, as many at a tick as there may be."""
    found = []
    for start in range(0, len(texts), distances.AT_A_TICK):
        measuring.tick()
        found += measuring.measure(bank, texts[start : start + distances.AT_A_TICK])
    return found


def test_a_tick_embeds_few_contexts_and_the_beginning_of_each():
    seen = []

    def embed(texts):
        seen.append(texts)
        return embed_words(texts)

    texts = [f"w{n} " * 400 for n in range(1_000)]
    measuring = Distances(embed, "words")
    assert measuring.bank_of("it", lambda: texts) is None
    assert measuring.bank_of("it", lambda: texts) is None
    assert measuring.bank_of("other", lambda: texts) is None
    assert sum(map(len, seen)) == distances.AT_A_TICK
    _, bank = made(texts, embed)
    seen.clear()
    assert len(measuring.measure(bank, texts, n_waiting=1)) == distances.AT_A_TICK // 2
    for _ in range(3):
        measuring.measure(bank, texts)
    assert sum(map(len, seen)) <= distances.AT_A_TICK
    assert {len(text) for part in seen for text in part} == {distances.CHARACTERS}
    measuring.tick()
    measuring.stop()
    with pytest.raises(EngineUnavailableError, match="stopping"):
        measuring.measure(bank, texts)


def test_an_unused_bank_gives_way():
    measuring = Distances(embed_words, "words")
    texts = ["w1 w2"] * 1_000
    measuring.bank_of("gone", lambda: texts)
    for _ in range(distances.IDLE_TICKS + 1 + (BANK + HELD_OUT) // distances.AT_A_TICK):
        measuring.tick()
        bank = measuring.bank_of("there", lambda: texts)
    assert len(bank.held_out) == HELD_OUT
    # What was made may not have come to be stored: it is there again at once.
    assert measuring.bank_of("there", lambda: texts) == bank
    assert measuring.bank_of("few", lambda: texts[:99]) is None
    measuring.tick()
    assert measuring.bank_of("few", lambda: texts[:99]) == Bank("words")


def test_a_bank_keeps_no_text_and_little():
    rng = np.random.default_rng(0)
    texts = about(rng, 1_000, [0, 1])
    measuring, bank = made(texts)
    kept = msgspec.json.encode(bank)
    assert b"w1 " not in kept
    assert len(kept) < 12_000
    vectors = embed_words(texts[:16])
    exact = distances.distances(distances.unpacked(bank), vectors)
    assert measured(measuring, msgspec.json.decode(kept, type=Bank), texts[:16]) == exact
    assert np.abs(np.linalg.norm(distances.unpacked(bank), axis=1) - 1).max() < 1e-5


def test_without_drift_distances_are_those_of_the_reference():
    rng = np.random.default_rng(1)
    p_values = []
    for _ in range(12):
        measuring, bank = made(about(rng, 400, [0, 1, 2]))
        now = distances.distances(distances.unpacked(bank), embed_words(about(rng, 200, [0, 1, 2])))
        p_values.append(two_sample_p(now, bank.held_out))
        # In the order in which they were sent: a topic after the other.
        ordered = [text for topic in (0, 1, 2) for text in about(rng, 200, [topic])]
        _, sorted_bank = made(ordered)
        now = measured(measuring, sorted_bank, about(rng, 96, [0, 1, 2]))
        p_values.append(two_sample_p(now, sorted_bank.held_out))
    # 24 tests: more than 4 below 5 % have a chance of 1 in 200 where all are exact.
    assert sum(p < 0.05 for p in p_values) <= 4
    assert min(p_values) > BOUND


def test_another_topic_of_the_same_words_is_found_by_its_distance_alone_and_clears():
    rng = np.random.default_rng(2)
    reference = about(rng, 1_000, [0, 1])
    held = contexts.contexts_of(reference)
    measuring, held.bank = made(reference)
    at = iter(range(1, 1_000_000))

    def moves(texts, n_distances=200):
        now = next(at)
        found = measured(measuring, held.bank, texts[:n_distances])
        contexts.gather_distances(held.bank, now, found)
        return [
            (move.figure, move.is_raised, move.since)
            for move in contexts.gather(held, now, texts, false_alarms=0.01)
        ]

    for _ in range(4):
        assert moves(about(rng, 200, [0, 1])) == []
    assert moves(about(rng, 200, ["both"])) == [("distance", True, 5.0)]
    # Words and lengths are as before: a test without distances is not what clears it.
    assert moves(about(rng, 200, ["both"]), n_distances=60) == []
    assert held.is_raised
    (cleared,) = moves(about(rng, 400, [0, 1]))
    assert cleared[1] is False
    assert held.raised_figure == ""


@pytest.mark.slow
def test_the_shipped_model_tells_topics_apart(load, monkeypatch):
    monkeypatch.setattr(distances, "AT_A_TICK", 64)
    scorer = load("shipped", "auto").scorer
    seen, new = [], []
    for line in sample_file("support_triage").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        team = row["targets"].get("team") or ""
        team = team if isinstance(team, str) else max(team, key=team.get)
        (new if team in {"technical", "other"} else seen).append(contexts.text_of(row["context"]))
    # By a hash: the file may be in any order.
    seen.sort(key=lambda text: zlib.crc32(text.encode()))
    measuring, bank = made(seen[:240], scorer.embed)
    assert two_sample_p(measured(measuring, bank, seen[240:300]), bank.held_out) > 0.001
    found = measured(measuring, bank, new[:100])
    assert two_sample_p(found, bank.held_out) < BOUND
    assert np.median(found) > np.median(bank.held_out)
