"""Files that outlive a crash: written whole or not at all, and flushed to the disk."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def flush(path: Path | str) -> None:
    """Flush a file, or a folder's own entries, to the disk: without it a rename may be lost."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """Flush every file of a folder and of those in it to the disk, and the folders themselves."""
    for path in sorted(folder.rglob("*")):
        flush(path)
    flush(folder)
