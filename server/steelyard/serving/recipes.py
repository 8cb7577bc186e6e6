"""Ready-made decisions for common needs, read from the package's data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from steelyard.serving.recipes_wire import Recipe

_FILE = Path(__file__).parent.parent / "assets" / "recipes.json"


@cache
def recipes() -> tuple[Recipe, ...]:
    """Return every recipe, in the order of the file; read once."""
    return msgspec.json.decode(_FILE.read_bytes(), type=tuple[Recipe, ...])
