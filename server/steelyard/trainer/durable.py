"""Files that survive a crash: a phase's result, and the note that it is complete."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from steelyard.durable import flush, write_atomically
from steelyard.wire.decoding import decode

T = TypeVar("T")


def write_struct(path: Path, value: object) -> None:
    """Write a value as JSON, whole or not at all; it is on the disk on return."""
    write_atomically(path, msgspec.json.encode(value, order="deterministic"))
    flush(path.parent)


def read_struct(path: Path, kind: type[T]) -> T | None:
    """Read a struct of ``write_struct``; ``None`` when there is none."""
    try:
        sent = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return decode(sent, kind)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path.name} is not what this program writes; remove it.") from error
