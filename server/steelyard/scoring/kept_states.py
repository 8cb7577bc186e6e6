"""What the lowest layers of base models made of questions and outcomes, kept across requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Of some tokens, (n_tokens, width).
States = NDArray[np.float32]

#: Bytes that are kept of all models together, unless a setting says otherwise: the questions and
#: outcomes of about 40,000 tokens.
MAX_BYTES = 64 * 1024 * 1024
#: Bytes of a kept entry beside its states and its key, about.
_ENTRY_BYTES = 400


@dataclass(frozen=True, slots=True)
class KeptFigures:
    """What a store of states has, and what it was asked for since it was made."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    n_bytes: int = 0


class KeptStates:
    """A store of states, bounded in bytes, least recently used out first; thread-safe."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._kept: OrderedDict[tuple[int, bytes], States] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = self._misses = self._evictions = self._n_bytes = 0

    def bound(self, max_bytes: int) -> None:
        """Keep at most so many bytes from now on; 0 keeps nothing."""
        with self._lock:
            self._max = max_bytes
            self._evict()

    def get(self, model: int, keys: Iterable[bytes]) -> dict[bytes, States]:
        """Return what is kept of some keys of a model."""
        found = {}
        with self._lock:
            for key in keys:
                states = self._kept.get((model, key))
                if states is None:
                    self._misses += 1
                else:
                    self._hits += 1
                    self._kept.move_to_end((model, key))
                    found[key] = states
        return found

    def put(self, model: int, states: Mapping[bytes, States]) -> None:
        """Keep states of a model, as far as the bound allows."""
        with self._lock:
            for key, value in states.items():
                if _size(key, value) > self._max:
                    continue
                before = self._kept.pop((model, key), None)
                if before is not None:
                    self._n_bytes -= _size(key, before)
                self._kept[model, key] = value
                self._n_bytes += _size(key, value)
            self._evict()

    def forget(self, model: int) -> None:
        """Drop all that is kept of a model."""
        with self._lock:
            for place in [place for place in self._kept if place[0] == model]:
                self._n_bytes -= _size(place[1], self._kept.pop(place))

    def figures(self) -> KeptFigures:
        """Return what is kept now, and what was counted."""
        with self._lock:
            return KeptFigures(self._hits, self._misses, self._evictions, self._n_bytes)

    def _evict(self) -> None:
        while self._n_bytes > self._max:
            (_, key), states = self._kept.popitem(last=False)
            self._n_bytes -= _size(key, states)
            self._evictions += 1


def _size(key: bytes, states: States) -> int:
    return len(key) + states.nbytes + _ENTRY_BYTES


#: What is kept in this process, of all its models together.
KEPT = KeptStates()
