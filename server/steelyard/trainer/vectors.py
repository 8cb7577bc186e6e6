"""Vectors of contexts in a file: those that a fine-tune starts with, and then those that it read too.

They are in half precision, as a dataset stores them, so that a fine-tune learns the same from a vector
that was stored as from one that it read itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from steelyard.durable import write_atomically

Floats = NDArray[np.float32]

#: Bytes of a text's hash.
_HASH = 32


def key_of(text: str) -> bytes:
    """Return the key of a text's vector."""
    return hashlib.sha256(text.encode()).digest()


def in_half_precision(vectors: Floats) -> Floats:
    """Return vectors as they are once they were stored."""
    return np.asarray(vectors, np.float16).astype(np.float32)


def read_vectors(path: Path) -> dict[bytes, Floats]:
    """Return the vectors of a file by key; none where there is no such file."""
    try:
        tensors = load(path.read_bytes())
    except (FileNotFoundError, SafetensorError):
        return {}
    keys = tensors["keys"].tobytes()
    vectors = tensors["vectors"].astype(np.float32)
    return {keys[i * _HASH : (i + 1) * _HASH]: vector for i, vector in enumerate(vectors)}


def write_vectors(path: Path, vectors: Mapping[bytes, Floats]) -> None:
    """Write vectors by key, of which there is at least one."""
    keys = np.frombuffer(b"".join(vectors), np.uint8).reshape(len(vectors), _HASH)
    rows = np.stack(list(vectors.values())).astype(np.float16)
    write_atomically(path, save({"keys": keys, "vectors": rows}))
