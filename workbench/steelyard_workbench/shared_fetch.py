"""One question to the server that several parts of a page share the answer of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedFetch(Generic[T]):
    """Fetches once; who asks meanwhile waits, and who asks later gets the same.

    A failure is raised to whoever asked, and the next to ask tries again.

    Parameters
    ----------
    fetch : callable
        Gives the data; blocks.

    Examples
    --------
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
        """Give the data."""
        with self._lock:
            if not self._held:
                self._held.append(self._fetch())
            return self._held[0]
