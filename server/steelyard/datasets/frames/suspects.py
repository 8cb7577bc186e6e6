"""Rows whose label differs from the prediction of models fitted on the other rows.

A linear model of the contexts' vectors learns from four fifths of the rows and predicts the fifth;
where its prediction contradicts a label by the rule of ``confident``, the label is suspect.
"""

from __future__ import annotations

import hashlib
import io
import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.datasets.confident import MOST_RATIO, rivals_of
from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.frames.vectors import Embed, Vectors, vectors_of
from steelyard.datasets.versions import Manifest
from steelyard.storage.frame_store import FrameStore

_log = logging.getLogger(__name__)

#: Parts of which each is predicted by a model of the others; labelled rows that this takes.
FOLDS, LEAST_ROWS = 5, 20
#: Rows that models learn from: a seeded sample of so many where there are more.
MAX_REFERENCES = 20_000
#: Inverse of the models' penalty.
_STRENGTH = 10.0
METHOD = (
    "Each fifth of the rows is predicted by a linear model of the contexts' vectors that learned from "
    "the other four. A label is suspect where another outcome is at least as likely as it is, in the "
    f"mean, for rows with that label, and {1 / MOST_RATIO:.0f} times as likely as the label "
    "(confident learning; Northcutt et al., 2021). The worst come first."
)

_SCHEMA = {"index": pl.Int64, "score": pl.Float32, "expected": pl.String}


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome that models expect of a decision with a suspect label."""

    outcome: str
    probability: float
    label_probability: float


@dataclass(frozen=True, slots=True)
class SuspectTable:
    """Suspect labels, by place.

    ``score`` is how much likelier another outcome is than the label of the row's worst decision: 0
    where none is suspect, NaN where too few rows have labels. ``expected`` is JSON, by decision.
    """

    score: NDArray[np.float32]
    expected: dict[int, str]


def load_suspects(store: FrameStore, manifest: Manifest, scorer: str) -> SuspectTable | None:
    """Return stored suspects; ``None`` when there are none yet, or the file is damaged."""
    name = _name_of(manifest, scorer)
    stored = store.find(name)
    if stored is None:
        return None
    try:
        return _table(pl.read_parquet(io.BytesIO(stored)), manifest.next_index)
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
    """Compare every label with a prediction and store the suspects; it blocks while contexts are embedded."""
    n_done = 0

    def watched(texts: Sequence[str]) -> Vectors:
        nonlocal n_done
        progress(n_done)
        n_done += len(texts)
        return embed(texts)

    vectors = [vectors_of(store, part, watched, scorer) for part in manifest.parts]
    indexes = np.concatenate([of_part for of_part, _ in vectors])
    stacked = np.concatenate([of_part for _, of_part in vectors])
    frame = _judge(store, manifest, indexes, stacked, lambda: progress(n_done))
    progress(manifest.rows)
    file_bytes = io.BytesIO()
    frame.write_parquet(file_bytes, compression="zstd")
    store.put_beside(_name_of(manifest, scorer), file_bytes.getvalue())
    return _table(frame, manifest.next_index)


def _judge(
    store: FrameStore,
    manifest: Manifest,
    indexes: NDArray[np.int64],
    vectors: Vectors,
    progress: Callable[[], None],
) -> pl.DataFrame:
    """Return the score of every row, and the expected outcome of doubted labels."""
    is_sample = np.isin(indexes, _sample(indexes, manifest))
    # By the vector, so that equal contexts are held out together.
    folds = np.array([zlib.crc32(vector.tobytes()) % FOLDS for vector in vectors], dtype=np.intp)
    scores = np.full(len(indexes), np.nan, dtype=np.float32)
    expected: list[dict[str, Expected]] = [{} for _ in range(len(indexes))]
    all_codes, outcomes = _labels_of(store, manifest)
    for decision, codes in all_codes.items():
        places = np.flatnonzero(codes[indexes] >= 0)
        codes_present, labels = np.unique(codes[indexes[places]], return_inverse=True)
        if len(places) < LEAST_ROWS or len(codes_present) < 2:
            continue
        shares = _out_of_fold(vectors[places], labels, folds[places], is_sample[places], progress)
        rows = np.arange(len(places))
        rivals = rivals_of(shares, labels)
        own, rival = shares[rows, labels], shares[rows, rivals]
        severity = np.where(rivals >= 0, rival - own, 0.0).astype(np.float32)
        scores[places] = np.fmax(scores[places], severity)
        for row in np.flatnonzero(rivals >= 0).tolist():
            expected[places[row]][decision] = Expected(
                outcome=outcomes[codes_present[rivals[row]]],
                probability=round(float(rival[row]), 4),
                label_probability=round(float(own[row]), 4),
            )
    encoded = [
        msgspec.json.encode(by_decision).decode() if by_decision else None
        for by_decision in expected
    ]
    return pl.DataFrame({"index": indexes, "score": scores, "expected": encoded}, schema=_SCHEMA)


def _out_of_fold(
    vectors: Vectors,
    labels: NDArray[np.intp],
    folds: NDArray[np.intp],
    is_sample: NDArray[np.bool_],
    progress: Callable[[], None],
) -> NDArray[np.float64]:
    """Return each row's probabilities by a model that learned from rows of the other folds."""
    from sklearn.linear_model import LogisticRegression

    n_outcomes = int(labels.max()) + 1
    shares = np.full((len(labels), n_outcomes), 1 / n_outcomes)
    for fold in range(FOLDS):
        progress()
        learned, fold_rows = is_sample & (folds != fold), np.flatnonzero(folds == fold)
        if len(fold_rows) == 0 or len(np.unique(labels[learned])) < 2:
            continue
        model = LogisticRegression(C=_STRENGTH, max_iter=200, tol=1e-3)
        model.fit(vectors[learned], labels[learned])
        shares[fold_rows] = 0.0
        shares[np.ix_(fold_rows, model.classes_)] = model.predict_proba(vectors[fold_rows])
    return shares


def _sample(indexes: NDArray[np.int64], manifest: Manifest) -> NDArray[np.int64]:
    if len(indexes) <= MAX_REFERENCES:
        return indexes
    # A generator's bits are the same in every version of NumPy; draws from them are not.
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


def _table(frame: pl.DataFrame, n_places: int) -> SuspectTable:
    score = np.full(n_places, np.nan, dtype=np.float32)
    score[frame["index"].to_numpy()] = frame["score"].to_numpy()
    doubted = frame.filter(pl.col("expected").is_not_null())
    return SuspectTable(
        score, dict(zip(doubted["index"].to_list(), doubted["expected"].to_list(), strict=True))
    )


def _name_of(manifest: Manifest, scorer: str) -> str:
    # The version's hash leaves out the order of rows, and the results are by their places: the
    # parts, which hold them, tell two orders apart.
    hasher = hashlib.sha256(manifest.sha256.encode())
    for part in manifest.parts:
        hasher.update(part.sha256.encode())
    # Beside the decisions' file, which goes with the version; others may have the same decisions.
    return f"{manifest.definitions}.{scorer}.{hasher.hexdigest()[:16]}.suspects.parquet"
