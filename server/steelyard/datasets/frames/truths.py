"""Warnings about the rows of a version: contexts with several labels, and copies on both sides.

Such rows are stored as they came, since the sender may have a reason. But a model learns all labels of a
context, and an evaluation counts all of them.
"""

from __future__ import annotations

import json

import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.versions import Manifest, Part
from steelyard.datasets.wire import SIDES, DatasetWarning
from steelyard.decisions.contexts import plain_hash
from steelyard.recent import Recent
from steelyard.storage.frame_store import FrameStore

#: Bytes of the hashes of parts' contexts that stay in memory: a dataset of small appends has many parts.
_CACHED_BYTES = 1 << 27
#: Rows that a warning names.
_MOST_NAMED = 5
_KEY = ("context_sha256", "decision", "question")
_plain: Recent[str, NDArray[np.int64]] = Recent(_CACHED_BYTES, lambda _, hashes: hashes.nbytes)


def with_warnings(store: FrameStore, manifest: Manifest) -> Manifest:
    """Return a version with the warnings about its rows; most have none."""
    with store.reading(*manifest.part_names()):
        warnings = (_several_labels(store, manifest), _near_copies(store, manifest))
    return structs.replace(manifest, warnings=tuple(filter(None, warnings)))


def _several_labels(store: FrameStore, manifest: Manifest) -> DatasetWarning | None:
    """Return a warning where a question about a context has several right answers."""
    if manifest.method != "sft" or manifest.rows == manifest.contexts:
        return None
    rows = scan(store, manifest)
    contexts = rows.select(pl.col("context_sha256").hash()).collect()
    doubled = contexts.filter(contexts.is_duplicated()).unique().lazy()
    shared = (
        rows.select("index", "context_sha256", "decisions", "labels")
        .with_columns(place=pl.col("context_sha256").hash())
        .join(doubled, left_on="place", right_on="context_sha256", how="semi")
        .collect(engine="streaming")
    )
    # By numbers: of many decisions in a row each would have the text of all.
    tasks = shared.select("decisions").unique().with_row_index("task")
    wordings = [
        (task, decision["id"], json.dumps(decision["question"]))
        for task, text in tasks.iter_rows()
        for decision in json.loads(text)
    ]
    schema = pl.Schema(
        {"task": tasks.schema["task"], "decision": pl.String(), "question": pl.String()}
    )
    questions = pl.DataFrame(wordings, schema, orient="row")
    share = pl.concat_str("outcome", "value", separator="\t")
    truths = (
        shared.join(tasks, on="decisions")
        .drop("decisions", "place")
        .explode("labels")
        .unnest("labels")
        .filter(pl.col("value") != 0)
        .join(questions, on=["task", "decision"])
        .group_by("index", *_KEY)
        .agg(truth=share.sort().str.join("\n"))
        .filter(pl.col("truth").n_unique().over(_KEY) > 1)
    )
    if truths.is_empty():
        return None
    n = truths["context_sha256"].n_unique()
    ids = ", ".join(truths["decision"].unique().sort())
    return DatasetWarning(
        code="several_labels",
        message=f"{_contexts(n, 'has', 'have')} several labels of {ids} {_named(truths['index'])}; one "
        "context with one question has one right answer. Correct the wrong ones in a draft, or give "
        "the share of each label in one row.",
    )


def _near_copies(store: FrameStore, manifest: Manifest) -> DatasetWarning | None:
    """Return a warning where contexts on both sides are alike but for how they are written."""
    by_side = [[_plain_contexts(store, part) for part in manifest.parts_of(side)] for side in SIDES]
    if not all(by_side):
        return None
    training, evaluation = (np.concatenate(side, axis=1) for side in by_side)
    is_copy = np.isin(evaluation[1], training[1])
    if not is_copy.any():
        return None
    n = len(np.unique(evaluation[1, is_copy]))
    return DatasetWarning(
        code="near_copies",
        message=f"{_contexts(n, 'is', 'are')} on both sides, but for case, blanks, markup or quoted "
        f"mail {_named(pl.Series(evaluation[0, is_copy]))}; a model may not be trained and evaluated "
        "on one. Exclude the copies of one side in a draft.",
    )


def _plain_contexts(store: FrameStore, part: Part) -> NDArray[np.int64]:
    """Return the indexes of a part's rows, and the hashes of the normal forms of their contexts."""
    cached = _plain.find(part.sha256)
    if cached is not None:
        return cached
    with store.open(f"{part.sha256}.parquet") as file:
        frame = pl.read_parquet(file, columns=["index", "context", "is_text", "images"])
    plain = [
        plain_hash(context if is_text else json.loads(context), images)
        for context, is_text, images in frame.drop("index").iter_rows()
    ]
    hashes = np.array([frame["index"].to_numpy(), plain], dtype=np.int64)
    return _plain.find_or_note(part.sha256, hashes)


def _contexts(n: int, singular: str, plural: str) -> str:
    return f"1 context {singular}" if n == 1 else f"{n:,} contexts {plural}"


def _named(indexes: pl.Series) -> str:
    first = indexes.unique().sort()
    more = ", …" if len(first) > _MOST_NAMED else ""
    return f"(rows of index {', '.join(map(str, first[:_MOST_NAMED]))}{more})"
