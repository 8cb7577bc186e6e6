"""Ready-made decisions for common needs, read from the package's data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from steelyard.serving.recipes_wire import Recipe
from steelyard.wire.decoding import decode

_FILE = Path(__file__).parent.parent / "assets" / "recipes.json"


@cache
def recipes() -> tuple[Recipe, ...]:
    """Return every recipe, in the order of the file; read once."""
    return decode(_FILE.read_bytes(), tuple[Recipe, ...])
