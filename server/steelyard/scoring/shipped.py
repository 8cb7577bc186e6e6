"""The models that ship: their names, and where their files are."""

from __future__ import annotations

from pathlib import Path

from steelyard.settings import Settings

#: Each base model that ships is in a folder of its name.
BASE = Path(__file__).parent.parent / "assets" / "steelyard-base-2"
#: The reader that ships, where its folder does.
READER = BASE.parent / "steelyard-reader-1"
#: The test double in place of one.
HASHING = "hashing"


def default_name(settings: Settings) -> str:
    """Return the name of the model that answers where a request names none."""
    return HASHING if settings.engine == HASHING else BASE.name
