"""Seeds as the libraries take them that have room for fewer than a fine-tune's."""

from __future__ import annotations

#: scikit-learn takes 32 bits and LightGBM 31.
_SEEDS = 2**31


def library_seed(seed: int) -> int:
    """Return a seed that every library takes; a small one is itself."""
    return seed % _SEEDS
