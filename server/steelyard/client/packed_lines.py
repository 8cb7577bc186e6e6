"""Lines of JSON that are many: packed some thousand at a time, as decisions repeat in each."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import overload

#: Lines that are packed together: cheap to open, and most repetitions are found.
_BLOCK_LINES = 4_096


class PackedLines(Sequence[bytes]):
    """Lines in the order they are added in; they take a small part of their bytes."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._blocks: list[bytes] = []
        self._last: list[bytes] = []

    def append(self, line: bytes) -> None:
        """Add a line, with its end."""
        self.n_bytes += len(line)
        self._last.append(line)
        if len(self._last) == _BLOCK_LINES:
            self._blocks.append(zlib.compress(b"".join(self._last), 1))
            self._last = []

    def __len__(self) -> int:
        """Return how many lines there are."""
        return len(self._blocks) * _BLOCK_LINES + len(self._last)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines."""
        for block in self._blocks:
            yield from _unpacked(block)
        yield from self._last

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        """Return a line, or some."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        block, at = divmod(place, _BLOCK_LINES)
        return (_unpacked(self._blocks[block]) if block < len(self._blocks) else self._last)[at]


def _unpacked(block: bytes) -> list[bytes]:
    return zlib.decompress(block).splitlines(keepends=True)
