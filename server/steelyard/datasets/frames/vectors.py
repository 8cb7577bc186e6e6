"""Vectors of the rows' contexts: made once a part, and kept in a file beside it."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.datasets.versions import Manifest, Part
from steelyard.datasets.wire import Partition
from steelyard.decisions.rendering import render_context
from steelyard.storage.frame_store import FrameStore

_log = logging.getLogger(__name__)

Vectors = NDArray[np.float32]
#: Gives unit vectors of texts, one row each; equal texts have equal vectors.
Embed = Callable[[Sequence[str]], Vectors]

#: The most rows of a version that are compared: past it, embedding them takes too long.
MAX_COMPARED = 200_000
#: Texts embedded at a time.
_BATCH = 512


def nearest_rows(
    store: FrameStore,
    manifest: Manifest,
    target: Vectors,
    embed: Embed,
    *,
    scorer: str,
    partition: Partition = "all",
    limit: int,
    without: int | None = None,
) -> list[tuple[int, float]]:
    """Return the rows whose contexts are nearest to a unit vector, the nearest first."""
    matches: list[tuple[float, int]] = []
    for part in manifest.parts_of(partition):
        indexes, vectors = vectors_of(store, part, embed, scorer)
        likeness = vectors @ target
        nearest = np.argsort(-likeness, kind="stable")[: limit + 1]
        matches += [(float(likeness[place]), int(indexes[place])) for place in nearest]
    matches = [(likeness, index) for likeness, index in matches if index != without]
    matches.sort(key=lambda pair: (-pair[0], pair[1]))
    return [(index, min(max(likeness, -1.0), 1.0)) for likeness, index in matches[:limit]]


def vectors_of(
    store: FrameStore, part: Part, embed: Embed, scorer: str
) -> tuple[NDArray[np.int64], Vectors]:
    """Return the indexes and context vectors of a part's rows, encoding the missing ones."""
    frame = read_contexts(store, part)
    indexes = frame["index"].to_numpy()
    stored = stored_vectors(store, part, scorer, frame)
    if stored is not None:
        return indexes, stored
    texts = rendered(frame)
    vectors = np.concatenate(
        [embed(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
    )
    store_vectors(store, part, scorer, frame, vectors)
    return indexes, vectors


def read_contexts(
    store: FrameStore, part: Part, columns: Sequence[str] = ("index", "context", "is_text")
) -> pl.DataFrame:
    """Return the index and the context of a part's rows, and whether it is a text or JSON."""
    with store.open(f"{part.sha256}.parquet") as file:
        return pl.read_parquet(file, columns=list(columns))


def rendered(frame: pl.DataFrame) -> list[str]:
    """Return the contexts of some rows in the form that a model reads in every request."""
    return [
        render_context(context if is_text else msgspec.json.decode(context))
        for context, is_text in frame.select("context", "is_text").iter_rows()
    ]


def store_vectors(
    store: FrameStore, part: Part, scorer: str, frame: pl.DataFrame, vectors: Vectors
) -> None:
    """Store the vectors of a part's rows, in half precision; ``frame`` says which contexts are texts."""
    file_bytes = io.BytesIO()
    np.save(file_bytes, vectors.astype(np.float16), allow_pickle=False)
    store.put_beside(_name_of(part, scorer, frame), file_bytes.getvalue())


def stored_vectors(
    store: FrameStore, part: Part, scorer: str, frame: pl.DataFrame
) -> Vectors | None:
    """Return the vectors of a part's rows; ``None`` where they were not computed yet."""
    name = _name_of(part, scorer, frame)
    stored = store.find(name)
    if stored is None:
        return None
    try:
        vectors: Vectors = np.load(io.BytesIO(stored), allow_pickle=False)
    except (EOFError, ValueError) as error:
        _log.warning("%s is damaged and is made again: %s", name, error)
        return None
    return vectors.astype(np.float32)


def scorer_of(evaluation_key: str) -> str:
    """Return the key of a model's stored vectors."""
    return hashlib.sha256(evaluation_key.encode()).hexdigest()[:16]


def _name_of(part: Part, scorer: str, frame: pl.DataFrame) -> str:
    # Up to 0.4 vectors of JSON contexts were of another form of them, under the plain name.
    has_json = not frame["is_text"].all()
    return f"{part.sha256}.{scorer}{'.json' if has_json else ''}.npy"
