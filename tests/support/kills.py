"""How many kills the long tests make, and when."""

from __future__ import annotations

import os


def kills_and_seed() -> tuple[int, int]:
    """Return the number of kills in a long test, and the seed of their times and kinds.

    They are STEELYARD_TEST_KILLS and STEELYARD_TEST_SEED of the environment.
    """
    kills = os.environ.get("STEELYARD_TEST_KILLS", "10")
    return int(kills), int(os.environ.get("STEELYARD_TEST_SEED", "20261125"))
