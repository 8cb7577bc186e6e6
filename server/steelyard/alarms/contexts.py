"""Contexts of stored decisions against those of a reference: how long, their words, and how far away.

All are compared by a two-sample test, on a bounded sample, each time that so many were gathered. Words
are kept as a bitmap of their hashes: it says whether a word was among the reference's, and no word.
Distances are in ``steelyard.alarms.distances``.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from steelyard.alarms.budget import alpha
from steelyard.alarms.distances import Bank
from steelyard.calibration.intervals import median_interval
from steelyard.calibration.sequences import RUN, two_sample_p

#: Contexts that are tested together, and the most that a reference has.
SAMPLE, MOST_REFERENCE = 200, 1_000
#: Distances that are tested at least: fewer contexts are embedded than are counted where many come.
MIN_DISTANCES = 100
#: Contexts of a reference at least; its first half is where words are learned.
MIN_REFERENCE = 100
#: Words of a context that are looked at.
_MOST_WORDS = 2_000
_BITS = 1 << 16
_WORD = re.compile(r"\w+")

LENGTH, NEW_WORDS, DISTANCE = "length", "new_words", "distance"


class Contexts(Struct):
    """The reference, and contexts gathered since the last test; lengths are in characters."""

    words: str
    lengths: list[float]
    new_words: list[float]
    gathered_lengths: list[float] = []
    gathered_words: list[float] = []
    since: float = 0.0
    until: float = 0.0
    is_raised: bool = False
    counted: int = 0
    #: Of which figure the raised alarm is, and what distances are measured by once it is made.
    raised_figure: str = ""
    bank: Bank | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMove:
    """An alarm about contexts that is to be raised or cleared."""

    is_raised: bool
    figure: str
    p_value: float
    alpha: float
    value: float
    low: float
    high: float
    reference: float
    reference_interval: tuple[float, float] | None
    reference_n: int
    n: int
    since: float
    until: float


def text_of(context: Any) -> str:
    """Return a context as text."""
    return context if isinstance(context, str) else json.dumps(context, ensure_ascii=False)


def contexts_of(texts: Sequence[str]) -> Contexts | None:
    """Return the reference that contexts make; ``None`` of too few."""
    if len(texts) < MIN_REFERENCE:
        return None
    half = len(texts) // 2
    bits = np.zeros(_BITS, dtype=bool)
    for text in texts[:half]:
        bits[_hashes(text)] = True
    words = base64.b64encode(zlib.compress(np.packbits(bits).tobytes())).decode()
    made = Contexts(words=words, lengths=[float(len(text)) for text in texts], new_words=[])
    made.new_words = [_share_of_new(_bits(made), text) for text in texts[half:]]
    return made


def gather(
    contexts: Contexts, at: float, texts: Sequence[str], *, false_alarms: float
) -> list[ContextMove]:
    """Count contexts; return the alarms that are to be raised or cleared once a sample is full."""
    moves = []
    bits = _bits(contexts)
    for text in texts:
        if not contexts.gathered_lengths:
            contexts.since = at
        contexts.until = at
        contexts.counted += 1
        contexts.gathered_lengths.append(float(len(text)))
        contexts.gathered_words.append(_share_of_new(bits, text))
        if len(contexts.gathered_lengths) >= SAMPLE:
            moves += _test(contexts, false_alarms)
    return moves


def gather_distances(bank: Bank, at: float, distances: Sequence[float]) -> None:
    """Count distances, for the next test."""
    if not bank.gathered:
        bank.since = at
    bank.until = at
    bank.gathered = [*bank.gathered, *distances][-SAMPLE:]


def _test(contexts: Contexts, false_alarms: float) -> list[ContextMove]:
    # A run has so many tests of each of the three.
    bound = alpha("contexts", false_alarms=false_alarms) / (3 * RUN / SAMPLE)
    samples = {
        LENGTH: (contexts.gathered_lengths, contexts.lengths),
        NEW_WORDS: (contexts.gathered_words, contexts.new_words),
    }
    bank, since, until = contexts.bank, contexts.since, contexts.until
    n_distances = 0 if bank is None else len(bank.gathered)
    if bank is not None and n_distances >= MIN_DISTANCES:
        samples[DISTANCE] = (bank.gathered, bank.held_out)
    p_values = {name: two_sample_p(now, of) for name, (now, of) in samples.items()}
    figure = min(p_values, key=lambda name: p_values[name])
    now, of = samples[figure]
    if figure == DISTANCE and bank is not None:
        since, until = bank.since, bank.until
    # Tests are of hundreds of values, and references of no fewer than a hundred.
    low, high = median_interval(now) or (min(now), max(now))
    move = ContextMove(
        is_raised=not contexts.is_raised,
        figure=figure,
        p_value=p_values[figure],
        alpha=bound,
        value=float(np.median(now)),
        low=low,
        high=high,
        reference=float(np.median(of)),
        reference_interval=median_interval(of),
        reference_n=len(of),
        n=len(now),
        since=since,
        until=until,
    )
    contexts.gathered_lengths, contexts.gathered_words = [], []
    if bank is not None and DISTANCE in samples:
        bank.gathered = []
    # It clears where even a test that is often wrong finds nothing, of what it was raised by too.
    has_none = DISTANCE not in samples and n_distances > 0
    is_waiting = has_none and contexts.raised_figure == DISTANCE
    if contexts.is_raised:
        must_move = move.p_value > 0.05 and not is_waiting
    else:
        must_move = move.p_value < bound
    if must_move:
        contexts.is_raised = not contexts.is_raised
        contexts.raised_figure = figure if contexts.is_raised else ""
    return [move] if must_move else []


def _hashes(text: str) -> list[int]:
    words = _WORD.findall(text.lower())[:_MOST_WORDS]
    return [zlib.crc32(word.encode()) % _BITS for word in words]


def _share_of_new(bits: np.ndarray[Any, np.dtype[np.bool_]], text: str) -> float:
    hashes = _hashes(text)
    return float(1 - bits[hashes].mean()) if hashes else 0.0


def _bits(contexts: Contexts) -> np.ndarray[Any, np.dtype[np.bool_]]:
    packed = zlib.decompress(base64.b64decode(contexts.words))
    return np.unpackbits(np.frombuffer(packed, dtype=np.uint8)).astype(bool)
