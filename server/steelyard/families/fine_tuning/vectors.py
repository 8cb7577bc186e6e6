"""Vectors of a dataset's rows: a trainer starts with those that are stored, and the others are stored then.

Near copies, suspects, searches and maps of the dataset use the same ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steelyard.datasets.frames.vectors import (
    read_contexts,
    rendered,
    store_vectors,
    stored_vectors,
)
from steelyard.datasets.versions import Manifest
from steelyard.storage.frame_store import FrameStore
from steelyard.trainer.task import VECTORS
from steelyard.trainer.vectors import Floats, key_of, read_vectors, write_vectors


def write_stored(folder: Path, store: FrameStore, manifest: Manifest, scorer: str) -> None:
    """Write the stored vectors of a version's rows into the folder of a trainer."""
    vectors: dict[bytes, Floats] = {}
    for part in manifest.parts:
        stored = stored_vectors(store, part, scorer, read_contexts(store, part, ["is_text"]))
        if stored is not None:
            contexts = rendered(read_contexts(store, part))
            vectors.update(zip(map(key_of, contexts), stored, strict=True))
    if vectors:
        write_vectors(folder / VECTORS, vectors)


def store_read(folder: Path, store: FrameStore, manifest: Manifest, scorer: str) -> None:
    """Store the vectors that a trainer read, of every part all of whose rows it read."""
    read = read_vectors(folder / VECTORS)
    for part in manifest.parts if read else ():
        frame = read_contexts(store, part, ["is_text"])
        if stored_vectors(store, part, scorer, frame) is None:
            keys = list(map(key_of, rendered(read_contexts(store, part))))
            if read.keys() >= set(keys):
                store_vectors(store, part, scorer, frame, np.stack([read[key] for key in keys]))
