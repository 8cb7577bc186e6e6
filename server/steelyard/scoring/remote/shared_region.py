"""Memory that a server on the same machine reads and writes: tensors that need not be sent.

A region's file is taken away as soon as the server has mapped it, so that none is left behind when
either process is killed. That, and room that is taken before it is written to, is why this is not
``tritonclient.utils.shared_memory``: without room its writes end the process. The server keeps its
mappings until it is asked to unmap: a region's name has its owner, so that others can do it for one
that was killed.
"""

from __future__ import annotations

import mmap
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.scoring.engine import Tensors
from steelyard.scoring.remote.process_marks import is_left_behind, mark

#: Where POSIX shared memory is on Linux; elsewhere nothing is shared.
SHARED = Path("/dev/shm")  # noqa: S108
#: Tensors begin at multiples of this.
ALIGNMENT = 64
#: Sizes are multiples of this, so that a region fits more than the pass that it was made for.
_STEP = 4 * 1024 * 1024
_PREFIX = "steelyard-"


class SharedRegion:
    """One region, mapped here and by a server; ``OSError`` for want of room, and errors of ``register``."""

    def __init__(self, size: int, register: Callable[[str, int], None]) -> None:
        self.size = -(-size // _STEP) * _STEP
        self.name = f"{_PREFIX}{mark()}-{secrets.token_hex(8)}"
        path = SHARED / self.name
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self.size)
            self._memory = mmap.mmap(descriptor, self.size)
            try:
                register(self.name, self.size)
            except BaseException:
                self._memory.close()
                raise
        finally:
            os.close(descriptor)
            path.unlink(missing_ok=True)

    def write(self, tensors: Mapping[str, NDArray[np.generic]]) -> dict[str, tuple[int, int]]:
        """Copy tensors into it, one after another."""
        places = place(tensors)
        for name, (start, _) in places.items():
            array = tensors[name]
            view: NDArray[np.generic] = np.frombuffer(
                self._memory, array.dtype, array.size, start
            ).reshape(array.shape)
            np.copyto(view, array)
        return places

    def read(self, start: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return a copy of a float32 tensor in it."""
        count = int(np.prod(shape))
        return np.frombuffer(self._memory, np.float32, count, start).reshape(shape).copy()

    def close(self) -> None:
        """Unmap it; its registrar unregisters it at the server."""
        self._memory.close()


def left_regions(names: Iterable[str]) -> list[str]:
    """Return the names of regions whose process is gone, of this machine's and this namespace's."""
    return [name for name in names if is_left_behind(name, _PREFIX)]


def place(
    sizes: Mapping[str, NDArray[np.generic]] | Mapping[str, int], start: int = 0
) -> dict[str, tuple[int, int]]:
    """Return where tensors lie one after another, aligned: start and bytes of each."""
    places = {}
    for name, size in sizes.items():
        n_bytes = size if isinstance(size, int) else size.nbytes
        start = -(-start // ALIGNMENT) * ALIGNMENT
        places[name] = (start, n_bytes)
        start += n_bytes
    return places


def large_ones(tensors: Tensors, least: int) -> Tensors:
    """Return the tensors of at least so many bytes."""
    return {name: array for name, array in tensors.items() if array.nbytes >= least}
