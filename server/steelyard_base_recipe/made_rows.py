"""Made-up rows, which stand in TOML files beside their readers."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def load_rows(name: str, type_: type[T]) -> T:
    """Load the file ``name`` of this folder as a type."""
    return msgspec.toml.decode(Path(__file__).with_name(name).read_bytes(), type=type_)
