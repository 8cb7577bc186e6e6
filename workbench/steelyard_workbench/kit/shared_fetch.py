"""One question to the server that several parts of a page share the answer of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedFetch(Generic[T]):
    """Fetches once; who asks meanwhile waits, and who asks later gets the same.

    A failure is raised to every waiting caller, and the next caller tries again.

    ``fetch`` returns the data; blocks.

    >>> numbers = iter([1, 2])
    >>> shared = SharedFetch(lambda: next(numbers))
    >>> shared(), shared()
    (1, 1)
    """

    def __init__(self, fetch: Callable[[], T]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._held: list[T] = []

    def __call__(self) -> T:
        """Return the data; fetch it if it is not there."""
        with self._lock:
            if not self._held:
                self._held.append(self._fetch())
            return self._held[0]

    def held(self, default: T) -> T:
        """Return the data if it was fetched, else another value."""
        return self._held[0] if self._held else default
