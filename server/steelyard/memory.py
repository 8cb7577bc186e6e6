"""Memory that was freed, given back to the system; and when Python looks for cycles in it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator

#: Of glibc's malloc.h; blocks from so many bytes are mapped alone.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES, _HEAPS = 1024 * 1024, 2


def trim_memory() -> None:
    """Return free memory to the system, where the C library can."""
    arrow = sys.modules.get("pyarrow")  # slow to load, and without it nothing is held there
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_memory_whole() -> None:
    """Make the C library return large blocks when they are freed, and keep few heaps.

    glibc raises its threshold for large blocks with each that is freed, and gives each thread a heap:
    a pass's buffers then stay between small things that live on.
    """
    with contextlib.suppress(OSError, AttributeError):
        c_library = ctypes.CDLL(None)
        c_library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        c_library.mallopt(_M_ARENA_MAX, _HEAPS)


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Look for no cycles: every thread would wait while the objects of a long text are looked at."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
