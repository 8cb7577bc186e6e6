"""Marks of processes in public names, so that a killed process's leftovers can be recognised.

A number of a process means something in its own PID namespace alone, and containers may share
``/dev/shm`` or a server. So a mark names the namespace too.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from steelyard.processes import is_running

_NAMESPACE, _BOOT = Path("/proc/self/ns/pid"), Path("/proc/sys/kernel/random/boot_id")
_MARK = re.compile(r"([0-9a-f]{12})-(\d{1,9})-")
_UNKNOWN = "0" * 12


def mark() -> str:
    """Return the mark of this process; names that begin with it continue after a dash."""
    return f"{_namespace()}-{os.getpid()}"


def is_left_behind(name: str, prefix: str) -> bool:
    """Return whether a process of this namespace gave a name and has ended."""
    parts = _MARK.match(name.removeprefix(prefix)) if name.startswith(prefix) else None
    if parts is None or parts[1] == _UNKNOWN or parts[1] != _namespace():
        return False
    return not is_running(int(parts[2]))


def _namespace() -> str:
    """Name this PID namespace; zeros where it cannot be known."""
    try:
        inode, boot = _NAMESPACE.stat().st_ino, _BOOT.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return _UNKNOWN
    # Every machine's first namespace has the same inode, and a port may lead to another machine.
    return hashlib.sha256(f"{boot} {inode}".encode()).hexdigest()[:12]
