"""Rows whose label is not that of the rows most like them: edited nearest neighbours.

A row is held against the rows whose contexts have the nearest vectors: the share of them, weighted
by the cosine, that is labelled otherwise is its score. From a half on the row's own label loses the
vote, which is where Wilson's rule of edited nearest neighbours (1972) would drop it.
"""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.frames.vectors import Embed, Vectors, vectors_of
from steelyard.datasets.versions import Manifest
from steelyard.storage.frame_store import FrameStore

_log = logging.getLogger(__name__)

#: How many nearest rows vote, and the fewest labelled ones among them.
NEIGHBOURS, LEAST_VOTES = 10, 3
#: From over this share of the votes on, a label is suspect.
SUSPECT_OVER = 0.5
#: Rows that others are held against: a seeded sample of so many where there are more.
MAX_REFERENCES = 20_000
#: Rows compared at a time.
_BATCH = 512
METHOD = (
    f"Share of the {NEIGHBOURS} rows with the nearest contexts (cosine of their vectors, weighted "
    "by it) whose label in the version differs; over 0.5 a label is suspect. Edited nearest "
    "neighbours (Wilson, 1972)."
)

_SCHEMA = {"index": pl.Int64, "score": pl.Float32, "neighbours": pl.String}


@dataclass(frozen=True, slots=True)
class SuspectTable:
    """What was found: by place, a score of 0 to 1; NaN where too few neighbours have labels."""

    score: NDArray[np.float32]
    neighbours: dict[int, str]


def load_suspects(store: FrameStore, manifest: Manifest, scorer: str) -> SuspectTable | None:
    """Return what was found before; ``None`` when nobody looked, or what is kept is damaged."""
    name = _name_of(manifest, scorer)
    kept = store.find(name)
    if kept is None:
        return None
    try:
        return _table(pl.read_parquet(io.BytesIO(kept)), manifest.next_index)
    except pl.exceptions.PolarsError as error:
        _log.warning("%s is damaged and will be made again: %s", name, error)
        return None


def find_suspects(
    store: FrameStore,
    manifest: Manifest,
    embed: Embed,
    *,
    scorer: str,
    progress: Callable[[int], None] = lambda _: None,
) -> SuspectTable:
    """Hold every row against its neighbours, and keep what was found beside the version.

    It blocks, for as long as the contexts take to be embedded once.
    """
    n_done = 0

    def watched(texts: Sequence[str]) -> Vectors:
        nonlocal n_done
        progress(n_done)
        n_done += len(texts)
        return embed(texts)

    vectors = [vectors_of(store, part, watched, scorer) for part in manifest.parts]
    votes = _Votes(store, manifest, vectors)
    frames = [pl.DataFrame(schema=_SCHEMA)]
    for indexes, of_part in vectors:
        for start in range(0, len(indexes), _BATCH):
            stop = start + _BATCH
            frames.append(votes.count(indexes[start:stop], of_part[start:stop]))
            progress(n_done)
    progress(manifest.rows)
    found = pl.concat(frames)
    file_bytes = io.BytesIO()
    found.write_parquet(file_bytes, compression="zstd")
    store.put_beside(_name_of(manifest, scorer), file_bytes.getvalue())
    return _table(found, manifest.next_index)


class _Votes:
    """The rows that others are held against, with their labels."""

    def __init__(
        self,
        store: FrameStore,
        manifest: Manifest,
        vectors: list[tuple[NDArray[np.int64], Vectors]],
    ) -> None:
        indexes = np.concatenate([one for one, _ in vectors])
        chosen = _sample(indexes, manifest)
        is_chosen = np.isin(indexes, chosen)
        self._places = indexes[is_chosen]
        self._vectors = np.concatenate([of_part[np.isin(one, chosen)] for one, of_part in vectors])
        self._codes, self._outcomes = _labels_of(store, manifest)
        self._n_places = manifest.next_index

    def count(self, indexes: NDArray[np.int64], vectors: Vectors) -> pl.DataFrame:
        """Return the scores of some rows, and what their neighbours expect."""
        likeness = vectors @ self._vectors.T
        # No row votes on itself.
        likeness[indexes[:, None] == self._places[None, :]] = -np.inf
        k = min(NEIGHBOURS, likeness.shape[1])
        nearest = np.argpartition(-likeness, k - 1, axis=1)[:, :k]
        weights = np.clip(np.take_along_axis(likeness, nearest, axis=1), 1e-6, None)
        weights[~np.isfinite(np.take_along_axis(likeness, nearest, axis=1))] = 0.0
        voters = self._places[nearest]
        scores = np.full(len(indexes), np.nan, dtype=np.float32)
        expected: list[dict[str, str]] = [{} for _ in range(len(indexes))]
        for decision, codes in self._codes.items():
            own, theirs = codes[indexes], codes[voters]
            counted = np.where(theirs >= 0, weights, 0.0)
            total = counted.sum(axis=1)
            can_vote = ((theirs >= 0) & (weights > 0)).sum(axis=1) >= min(LEAST_VOTES, k)
            said = can_vote & (own >= 0) & (total > 0)
            agreeing = np.where(theirs == own[:, None], counted, 0.0).sum(axis=1)
            share = 1.0 - np.divide(agreeing, total, out=np.ones_like(total), where=total > 0)
            scores = np.where(said, np.fmax(scores, share.astype(np.float32)), scores)
            # Of each voter: the weight of all that vote as it does.
            alike = (theirs[:, :, None] == theirs[:, None, :]) * counted[:, None, :]
            best = np.where(theirs >= 0, alike.sum(axis=2), -1.0).argmax(axis=1)
            winners = np.take_along_axis(theirs, best[:, None], axis=1)[:, 0]
            for row in np.flatnonzero(said).tolist():
                expected[row][decision] = self._outcomes[winners[row]]
        encoded = [msgspec.json.encode(one).decode() if one else None for one in expected]
        return pl.DataFrame(
            {"index": indexes, "score": scores, "neighbours": encoded}, schema=_SCHEMA
        )


def _sample(indexes: NDArray[np.int64], manifest: Manifest) -> NDArray[np.int64]:
    if len(indexes) <= MAX_REFERENCES:
        return indexes
    # The bits of a generator are the same in every version of NumPy; what is drawn of them is not.
    seed = int(manifest.sha256[:15], 16)
    keys = np.random.PCG64(seed).random_raw(len(indexes))
    return indexes[np.argsort(keys, kind="stable")[:MAX_REFERENCES]]


def _labels_of(
    store: FrameStore, manifest: Manifest
) -> tuple[dict[str, NDArray[np.int32]], list[str]]:
    """Return by decision, and by place, the code of the outcome that a row expects; -1 for none."""
    tops = (
        scan(store, manifest)
        .select("index", "labels")
        .explode("labels")
        .unnest("labels")
        .filter("is_top")
        .select("index", "decision", "outcome")
    )
    with store.reading(*manifest.part_names()):
        frame = tops.collect()
    outcomes = frame["outcome"].unique().sort()
    code_of = {name: code for code, name in enumerate(outcomes)}
    codes: dict[str, NDArray[np.int32]] = {}
    for (decision,), rows in frame.group_by("decision"):
        column = codes[str(decision)] = np.full(manifest.next_index, -1, dtype=np.int32)
        column[rows["index"].to_numpy()] = (
            rows["outcome"].replace_strict(code_of, return_dtype=pl.Int32).to_numpy()
        )
    return dict(sorted(codes.items())), outcomes.to_list()


def _table(found: pl.DataFrame, n_places: int) -> SuspectTable:
    score = np.full(n_places, np.nan, dtype=np.float32)
    score[found["index"].to_numpy()] = found["score"].to_numpy()
    told = found.filter(pl.col("neighbours").is_not_null())
    return SuspectTable(
        score, dict(zip(told["index"].to_list(), told["neighbours"].to_list(), strict=True))
    )


def _name_of(manifest: Manifest, scorer: str) -> str:
    # The version's hash leaves out the order of rows, and what is kept is by their places: the
    # parts, which hold them, tell two orders apart.
    hasher = hashlib.sha256(manifest.sha256.encode())
    for part in manifest.parts:
        hasher.update(part.sha256.encode())
    # Beside the decisions' file, which goes with the version; others may have the same decisions.
    return f"{manifest.definitions}.{scorer}.{hasher.hexdigest()[:16]}.suspects.parquet"
