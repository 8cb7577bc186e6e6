"""Ids of stored things: a prefix for the kind, then time, then randomness."""

from __future__ import annotations

import os
import time

# Crockford's base 32: no i, l, o or u, and its order is the order of its characters.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BYTES = 10
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = range(120, -1, -10)


def new_id(prefix: str) -> str:
    """Return a new id, such as ``dec_01k6v0p3w4e9h2n5t7x8z1a3c6``.

    >>> new_id("dec")[:4], len(new_id("dec"))
    ('dec_', 30)
    """
    milliseconds = time.time_ns() // 1_000_000
    number = (milliseconds << 8 * _RANDOM_BYTES) | int.from_bytes(os.urandom(_RANDOM_BYTES))
    pairs = [_PAIRS[number >> shift & 1023] for shift in _SHIFTS]
    return f"{prefix}_{''.join(pairs)}"
