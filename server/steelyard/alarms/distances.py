"""How far contexts are from those of a reference: one minus the mean cosine to the nearest of a sample.

The reference's contexts are shuffled; some are the bank, and new contexts are compared with the
distances of the others to it: both were left out of the bank, so that without drift they are alike.
Vectors are the base model's. They are made by the thread that looks, so few between two ticks that
requests hardly wait for them, of the beginning of each context. Of the bank are kept its vectors, and
no text.
"""

from __future__ import annotations

import base64
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from steelyard.errors import EngineUnavailableError

Vectors: TypeAlias = NDArray[np.float32]
#: Return unit vectors of texts, a row each.
Embed: TypeAlias = Callable[[Sequence[str]], Vectors]

#: Contexts of a bank, those whose distances are the reference, and how many near ones are averaged.
BANK, HELD_OUT, NEAREST = 128, 192, 3
#: A reference of fewer contexts has no bank.
MIN_REFERENCE = 100
#: Characters of a context that are embedded.
CHARACTERS = 400
#: Contexts of a reference, and new ones, that are embedded between two ticks: some half a second each.
AT_A_TICK = 16
#: Ticks after which an unused bank is given up.
IDLE_TICKS = 60
_DIGITS = 4


class Bank(Struct):
    """Reference vectors of contexts, and the vectors gathered since the last test."""

    scorer: str
    #: Eight bits a number, packed; nothing where the reference has too few contexts.
    vectors: str = ""
    width: int = 0
    held_out: list[float] = []
    gathered: list[float] = []
    since: float = 0.0
    until: float = 0.0


@dataclass(slots=True)
class _Making:
    """A bank of which some contexts are embedded."""

    of: Any
    texts: list[str]
    requested_at: int
    vectors: list[Vectors] = field(default_factory=list)


class Distances:
    """Embeds for a watcher, a bounded number of contexts between two ticks.

    ``scorer`` names whose vectors they are: a bank of other vectors is made anew.
    """

    def __init__(self, embed: Embed, scorer: str) -> None:
        self.scorer = scorer
        self._embed = embed
        self._stopping = threading.Event()
        self._making: _Making | None = None
        self._tick, self._to_make, self._to_measure = 0, AT_A_TICK, AT_A_TICK

    def stop(self) -> None:
        """Embed nothing any more."""
        self._stopping.set()

    def tick(self) -> None:
        """Allow so many to be embedded again."""
        self._tick += 1
        self._to_make = self._to_measure = AT_A_TICK

    def bank_of(self, of: Any, texts_of: Callable[[], Sequence[str]]) -> Bank | None:
        """Return the bank of a reference's contexts once all are embedded; one is made at a time.

        ``of``: which reference, to go on with it at the next tick. ``texts_of`` returns its
        contexts; called when they are begun with.
        """
        making = self._making
        if making is None or (making.of != of and self._tick - making.requested_at > IDLE_TICKS):
            making = self._making = _Making(of, _shuffled(texts_of()), self._tick)
        if making.of != of:
            return None
        making.requested_at = self._tick
        n_made = sum(map(len, making.vectors))
        part = making.texts[n_made : n_made + self._to_make]
        if part:
            self._to_make -= len(part)
            making.vectors.append(self._vectors(part))
        if n_made + len(part) < len(making.texts):
            return None
        # Kept until another one is asked for: the answer may not come to be stored.
        making.requested_at = self._tick - IDLE_TICKS
        return _bank(self.scorer, making.vectors)

    def measure(self, bank: Bank, texts: Sequence[str], n_waiting: int = 0) -> list[float]:
        """Return the distances of contexts, evenly chosen where there are more than may be embedded.

        ``n_waiting`` others are to have as many.
        """
        if not (bank.vectors and texts and self._to_measure):
            return []
        step = -(-len(texts) // max(self._to_measure // (n_waiting + 1), 1))
        part = texts[::step]
        self._to_measure -= len(part)
        return distances(unpacked(bank), self._vectors(part))

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        if self._stopping.is_set():
            raise EngineUnavailableError("The server is stopping.")
        return self._embed([text[:CHARACTERS] for text in texts])


def distances(bank: Vectors, vectors: Vectors) -> list[float]:
    """Return how far vectors are from the nearest of a bank, all of length 1."""
    likeness = np.sort(vectors @ bank.T, axis=1)[:, -NEAREST:]
    return [round(1 - float(mean), _DIGITS) for mean in likeness.mean(axis=1)]


def _shuffled(texts: Sequence[str]) -> list[str]:
    if len(texts) < MIN_REFERENCE:
        return []
    order = np.random.default_rng(0).permutation(len(texts))
    return [texts[place] for place in order[: BANK + HELD_OUT]]


def _bank(scorer: str, parts: Sequence[Vectors]) -> Bank:
    if not parts:
        return Bank(scorer)
    vectors = np.concatenate(parts)
    n = min(BANK, len(vectors) // 2)
    peaks = np.abs(vectors[:n]).max(axis=1, keepdims=True)
    rounded = np.rint(vectors[:n] * (127 / np.maximum(peaks, 1e-9))).astype(np.int8)
    packed = base64.b64encode(zlib.compress(rounded.tobytes())).decode()
    bank = Bank(scorer, packed, vectors.shape[1])
    bank.held_out = distances(unpacked(bank), vectors[n:])
    return bank


def unpacked(bank: Bank) -> Vectors:
    """Return the vectors of a bank, each of length 1."""
    raw = zlib.decompress(base64.b64decode(bank.vectors))
    vectors = np.frombuffer(raw, dtype=np.int8).reshape(-1, bank.width).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.maximum(lengths, 1e-9)).astype(np.float32, copy=False)
    return unit
