"""Vectors of rows that have none yet: computed a part at a time, behind the requests for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from steelyard.datasets.frames.vectors import Embed, Vectors, vectors_of
from steelyard.datasets.versions import Part
from steelyard.errors import EngineUnavailableError
from steelyard.storage.frame_store import FrameStore


@dataclass(slots=True)
class _Making:
    """A part whose vectors are made, or wait to be, and how many wait for them."""

    future: Future[None]
    n_waiting: int = 0


class RowVectors:
    """Makes vectors of rows and keeps them beside the rows, once for all who wait for them."""

    def __init__(self, store: FrameStore, scorer: str) -> None:
        self._store = store
        self._scorer = scorer
        # Of its own: embedding a part takes minutes, and other work on threads is short.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="steelyard-vectors")
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._making: dict[str, _Making] = {}

    async def make(self, parts: Sequence[Part], embed: Embed) -> None:
        """Compute the missing vectors of some parts; other callers' parts come in between."""
        for part in parts:
            making = self._join(part, embed)
            try:
                # Shielded: others may wait for the same part.
                await asyncio.shield(asyncio.wrap_future(making.future))
            finally:
                self._leave(part, making)

    def close(self) -> None:
        """Stop running work."""
        self._stopped.set()
        self._pool.shutdown(cancel_futures=True)

    def _join(self, part: Part, embed: Embed) -> _Making:
        with self._lock:
            making = self._making.get(part.sha256)
            if making is None:
                making = _Making(self._pool.submit(self._run, part, embed))
                self._making[part.sha256] = making
            making.n_waiting += 1
            return making

    def _leave(self, part: Part, making: _Making) -> None:
        with self._lock:
            making.n_waiting -= 1
            # A running pass goes on: the next caller finds its vectors.
            if making.n_waiting == 0 and making.future.cancel():
                del self._making[part.sha256]

    def _run(self, part: Part, embed: Embed) -> None:
        def watched(texts: Sequence[str]) -> Vectors:
            if self._stopped.is_set():
                raise EngineUnavailableError("The server is stopping; ask again.")
            return embed(texts)

        try:
            vectors_of(self._store, part, watched, self._scorer)
        finally:
            with self._lock:
                del self._making[part.sha256]
