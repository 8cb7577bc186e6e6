"""One form for equal JSON values, and the hashes made of it.

Two values are equal when they say the same whatever their spelling: keys in any order, ``1``,
``1.0`` and ``1e0``, escapes or characters. The canonical form is JSON with sorted keys, no blanks,
numbers without a fraction written as integers, and texts in UTF-8.
"""

from __future__ import annotations

import hashlib
import json
from json.encoder import encode_basestring
from typing import Any

_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def canonical_json(value: Any) -> bytes:
    """Return the canonical form of a JSON value."""
    if isinstance(value, str):
        return encode_basestring(value).encode()
    text = json.dumps(
        _plain_numbers(value),
        ensure_ascii=False,
        allow_nan=False,
        sort_keys=True,
        separators=(",", ":"),
    )
    return text.encode()


def compact_json(value: Any) -> str:
    """Return a JSON value as it is stored: its own key order, and no blanks."""
    return encode_basestring(value) if isinstance(value, str) else _COMPACT.encode(value)


def digest(*parts: bytes) -> bytes:
    """Return the SHA-256 of parts, which must be of fixed length or hold no line break."""
    return hashlib.sha256(b"\n".join(parts)).digest()


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_numbers(item) for item in value]
    return value
