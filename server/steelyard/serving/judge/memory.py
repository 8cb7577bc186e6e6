"""The memory that a judge needs, and the free memory of this machine."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from steelyard.serving.judge.gguf import GgufHeader

#: Bytes for a batch's numbers and the library itself, beside the file and the cache.
WORKING_BYTES = 256 * 1024**2
_GB = 1e9


def required_bytes(header: GgufHeader, context_tokens: int, slots: int) -> int:
    """Return the bytes of a running judge: its file, its contexts' cache, and room to compute."""
    return header.file_bytes + _cache_bytes(header, context_tokens, slots) + WORKING_BYTES


def free_bytes() -> int | None:
    """Return the bytes that a new process may take; ``None`` where the system does not say."""
    limits = [_available(), _left_in_group()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def shortage(name: str, header: GgufHeader, context_tokens: int, slots: int, free: int) -> str:
    """Return a sentence on the missing memory, with the remedy."""
    cache = _cache_bytes(header, context_tokens, slots)
    needed = required_bytes(header, context_tokens, slots)
    return (
        f"{name} needs about {needed / _GB:.1f} GB of memory ({header.file_bytes / _GB:.1f} GB for "
        f"the file, {cache / _GB:.1f} GB for {slots + 1} contexts of {context_tokens} tokens), and "
        f"{free / _GB:.1f} GB are free. Free memory, lower context_tokens or concurrency, or choose a "
        "smaller file."
    )


def _cache_bytes(header: GgufHeader, context_tokens: int, slots: int) -> int:
    # What it writes has a context beside those of the requests.
    return header.cache_bytes * context_tokens * (slots + 1)


def _available() -> int | None:
    if sys.platform != "linux":
        return None
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _left_in_group() -> int | None:
    """Return the free memory of a container's limit; its file cache counts as free, as for the machine."""
    with suppress(OSError, ValueError, KeyError):
        root = Path("/sys/fs/cgroup")
        limit = (root / "memory.max").read_text(encoding="ascii").strip()
        if limit == "max":
            return None
        current = int((root / "memory.current").read_text(encoding="ascii"))
        lines = (root / "memory.stat").read_text(encoding="ascii").splitlines()
        figures = dict(line.split() for line in lines)
        return max(int(limit) - current + int(figures["inactive_file"]), 0)
    return None
