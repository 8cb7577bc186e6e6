"""Ids of the things Steelyard mints: a prefix that says what it is, then time, then randomness."""

from __future__ import annotations

import secrets
import time

# Crockford's base 32: no i, l, o or u, and its order is the order of its characters.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80
_LENGTH = 26


def new_id(prefix: str) -> str:
    """Return a new id, such as ``dec_01k6v0p3w4e9h2n5t7x8z1a3c6``.

    >>> new_id("dec")[:4], len(new_id("dec"))
    ('dec_', 30)
    """
    milliseconds = time.time_ns() // 1_000_000
    number = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    digits = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return f"{prefix}_{''.join(reversed(digits))}"
