"""Files that outlive a crash: what a phase made, and the note that it is whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from steelyard.scoring.assets import write_atomically

T = TypeVar("T")


def write_struct(path: Path, value: object) -> None:
    """Write a value as JSON, whole or not at all; it is on the disk on return."""
    write_atomically(path, msgspec.json.encode(value, order="deterministic"))
    flush_directory(path.parent)


def read_struct(path: Path, kind: type[T]) -> T | None:
    """Read what ``write_struct`` wrote; ``None`` when nothing was."""
    try:
        sent = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(sent, type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path.name} is not what this program writes; remove it.") from error


def flush_tree(folder: Path) -> None:
    """Flush every file of a folder and of those in it to the disk, and the folders themselves."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        elif path.is_dir():
            flush_directory(path)
    flush_directory(folder)


def flush_directory(folder: Path) -> None:
    """Flush a folder's own entries to the disk: without it a rename may be lost."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
