"""A bounded cache in memory: the least recently used entry goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """A bounded store by key; thread-safe.

    ``most``: the bound on the sum of the sizes. ``size_of`` returns the size of an entry; 1 for
    each by default. ``most_entries``: a bound on their number beside it. ``stores_any`` says
    whether the newest entry stays, however large it is. ``on_evicted`` is called with each value
    that has to go.
    """

    def __init__(
        self,
        most: int = 4_096,
        size_of: Callable[[Key, Value], int] = lambda *_: 1,
        *,
        most_entries: int | None = None,
        stores_any: bool = False,
        on_evicted: Callable[[Value], object] = lambda _: None,
    ) -> None:
        self._most, self._size_of = most, size_of
        self._most_entries, self._least_entries = most_entries, int(stores_any)
        self._on_evicted = on_evicted
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()
        #: The sum of the sizes, and how many entries had to go.
        self.size = self.evictions = 0

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._values))

    def items(self) -> list[tuple[Key, Value]]:
        """Return the stored values, the least recently used first."""
        return list(self._values.items())

    def find(self, key: Key) -> Value | None:
        """Return the stored value, which is used by that; ``None`` where nothing is."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def note(self, key: Key, value: Value) -> None:
        """Store a value in the place of the present one."""
        with self._lock:
            self._drop(key)
            self._add(key, value)

    def find_or_note(self, key: Key, value: Value) -> Value:
        """Return the stored value; the given one is stored where there is none."""
        with self._lock:
            stored = self._values.get(key)
            if stored is None:
                self._add(key, value)
                return value
            self._values.move_to_end(key)
            return stored

    def pop(self, key: Key) -> None:
        """Drop the stored value, if there is one."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        """Drop everything."""
        for key in self:
            self.pop(key)

    def bound(self, most: int) -> None:
        """Store at most so much from now on."""
        with self._lock:
            self._most = most
            self._evict()

    def _add(self, key: Key, value: Value) -> None:
        size = self._size_of(key, value)
        if size <= self._most or self._least_entries:
            self._values[key] = value
            self.size += size
            self._evict()

    def _drop(self, key: Key) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self.size -= self._size_of(key, value)

    def _evict(self) -> None:
        while len(self._values) > self._least_entries and (
            self.size > self._most
            or (self._most_entries is not None and len(self._values) > self._most_entries)
        ):
            key, value = self._values.popitem(last=False)
            self.size -= self._size_of(key, value)
            self.evictions += 1
            self._on_evicted(value)
