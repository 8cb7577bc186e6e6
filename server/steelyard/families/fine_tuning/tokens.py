"""Tokens of stored rows: counted once for a file of rows and a tokenizer, and kept beside the file.

A large dataset takes longer to count than a call may wait, so the count goes on when the caller is
refused with ``tokens_counting``, and a later call finds it. A part never changes, so neither does
its count.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steelyard.datasets.versions import Part
from steelyard.decisions.kinds import without_guidelines
from steelyard.decisions.rendering import render_value
from steelyard.decisions.tokens import TokenCounter, count_input_tokens
from steelyard.decisions.validation import decisions_of
from steelyard.errors import TokensCountingError
from steelyard.recent import Recent
from steelyard.storage.frame_store import FrameStore

#: Seconds that a call waits for a count.
WAIT_S = 5.0
#: Lists of decisions whose tokens are kept at hand during one count.
_CACHED_TASKS = 1024
#: Counts kept in memory: 4 bytes a row, a part has at most about a hundred thousand.
_CACHED_COUNTS = 32
#: Digits of a tokenizer's hash in the name of a count.
_NAME_DIGITS = 16

Counts = NDArray[np.int32]


class RowTokens:
    """Counts the tokens of stored rows, and keeps the counts; for one event loop at a time."""

    def __init__(self, store: FrameStore, *, wait_s: float = WAIT_S) -> None:
        self._store = store
        self._wait_s = wait_s
        self._running: dict[str, asyncio.Task[Counts]] = {}
        self._kept: Recent[str, Counts] = Recent(_CACHED_COUNTS)
        self._failed: dict[str, Exception] = {}

    async def of(self, parts: Sequence[Part], counter: TokenCounter) -> Counts:
        """Return the input tokens of context and decisions of every row, one part after the other."""
        missing = [self._start(part, counter) for part in parts]
        tasks = [task for task in missing if task is not None]
        if tasks:
            done, waiting = await asyncio.wait(tasks, timeout=self._wait_s)
            for task in done:
                self._failed.pop(task.get_name(), None)
                task.result()
            if waiting:
                raise TokensCountingError(
                    "The tokens of the dataset are being counted; try again in a few seconds."
                )
        counts = [self._kept.find(_name_of(part, counter)) for part in parts]
        complete = [
            # One that was pushed out of memory meanwhile is on the disk.
            await asyncio.to_thread(self._read_or_count, part, counter) if count is None else count
            for part, count in zip(parts, counts, strict=True)
        ]
        return np.concatenate(complete) if complete else np.zeros(0, np.int32)

    def _start(self, part: Part, counter: TokenCounter) -> asyncio.Task[Counts] | None:
        name = _name_of(part, counter)
        if self._kept.find(name) is not None:
            return None
        if name in self._failed:
            raise self._failed.pop(name)
        running = self._running.get(name)
        if running is None or running.get_loop() is not asyncio.get_running_loop():
            running = asyncio.create_task(self._find(part, counter), name=name)
            self._running[name] = running
            running.add_done_callback(lambda task: self._end(name, task))
        return running

    async def _find(self, part: Part, counter: TokenCounter) -> Counts:
        counts = await asyncio.to_thread(self._read_or_count, part, counter)
        self._kept.note(_name_of(part, counter), counts)
        return counts

    def _end(self, name: str, task: asyncio.Task[Counts]) -> None:
        if self._running.get(name) is task:
            del self._running[name]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            # The caller may be gone; the next one gets the error.
            self._failed[name] = error

    def _read_or_count(self, part: Part, counter: TokenCounter) -> Counts:
        name = _name_of(part, counter)
        data = self._store.find(name)
        counts = None if data is None else _read_counts(data, part.rows)
        if counts is not None:
            return counts
        counts = self._count(part, counter)
        file = io.BytesIO()
        np.save(file, counts, allow_pickle=False)
        self._store.put_beside(name, file.getvalue())
        return counts

    def _count(self, part: Part, counter: TokenCounter) -> Counts:
        @lru_cache(_CACHED_TASKS)
        def count_decisions(sent: str) -> int:
            return count_input_tokens(counter, "", without_guidelines(decisions_of(sent)))

        counts: list[int] = []
        with self._store.open(f"{part.sha256}.parquet") as file:
            for batch in pq.ParquetFile(file).iter_batches(
                columns=["context", "is_text", "decisions"], use_threads=False
            ):
                columns = (column.to_pylist() for column in batch.columns)
                for context, is_text, decisions in zip(*columns, strict=True):
                    text = context if is_text else render_value(msgspec.json.decode(context))
                    counts.append(counter.count(text) + count_decisions(decisions))
        return np.array(counts, dtype=np.int32)


def _read_counts(data: bytes, n_rows: int) -> Counts | None:
    """Return counts as they were kept; ``None`` when these are not they."""
    try:
        counts: Counts = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        return None
    return counts if counts.shape == (n_rows,) and counts.dtype == np.int32 else None


def _name_of(part: Part, counter: TokenCounter) -> str:
    return f"{part.sha256}.tokens-{counter.sha256[:_NAME_DIGITS]}.npy"
