"""A version without some rows of the one before it, and with others in their place.

Parts that have no such row are shared; the others are written again without them. Every row keeps
its index, and a row with new labels is a new row: a count of new rows by their indexes counts it. A
guideline is no part of the question: rows that get another keep their indexes and hashes.
"""

from __future__ import annotations

import contextlib
import io
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steelyard import errors
from steelyard.datasets.canonical import compact_json
from steelyard.datasets.definitions import Definition
from steelyard.datasets.frames.rows import STORED_SCHEMA
from steelyard.datasets.frames.scanning import load_definitions, load_retired, scan
from steelyard.datasets.frames.truths import with_warnings
from steelyard.datasets.frames.writing import JSON, PARQUET, PartWriter, VersionWriter
from steelyard.datasets.rows import Row, read_task
from steelyard.datasets.versions import Manifest, Part, hash_without
from steelyard.datasets.wire import SIDES, Side, Split
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.violations import Violations

Places = NDArray[np.int64]
#: Returns a decision with another guideline.
Guide = Callable[[Mapping[str, Any]], dict[str, Any]]

_decode: Callable[[str | bytes | msgspec.Raw], Any] = msgspec.json.decode


def write_revision(
    store: FrameStore,
    previous: Manifest,
    *,
    excluded: Places,
    replaced: Places,
    rows: Mapping[Side, Iterable[Sequence[Row]]],
    guides: Mapping[str, Guide] = types.MappingProxyType({}),
    min_rows: int = 1,
) -> Manifest:
    """Write the version that a review makes of the latest one, with ``guides``, durably; it blocks."""
    remaining = _without(store, previous, excluded, replaced)
    if remaining.rows + len(replaced) < max(min_rows, 1):
        raise errors.TooFewRowsError(
            f"The version would have {remaining.rows + len(replaced)} rows; a dataset has at least "
            f"{max(min_rows, 1)}."
        )
    n_replaced = 0
    with VersionWriter(store, previous.dataset_id, remaining) as writer:
        for side in SIDES:
            for batch in rows.get(side, ()):
                writer.add(batch, side)
                n_replaced += len(batch)
        # Nothing is added: rows were left out alone, or others are already as these were made.
        made = msgspec.structs.replace(
            remaining,
            version=previous.version + 1,
            added=0,
            duplicates_removed=remaining.duplicates_removed + n_replaced,
        )
        if n_replaced:
            with contextlib.suppress(errors.NoNewRowsError):
                made = writer.finish()
    for side in SIDES:
        if previous.parts_of(side) and not made.parts_of(side):
            raise errors.TooFewRowsError(
                f"No {side} row would be left; include one of them, or make a new dataset."
            )
    if guides:
        made = _guided(store, made, guides)
    return with_warnings(store, _forget_wordings(store, made) if n_replaced else made)


def _guided(store: FrameStore, manifest: Manifest, guides: Mapping[str, Guide]) -> Manifest:
    """Return a version whose rows ask decisions with other guidelines."""

    def guide(decision: dict[str, Any]) -> dict[str, Any]:
        made = guides.get(decision["id"])
        return decision if made is None else made(decision)

    parts: list[Part] = []
    for part in manifest.parts:
        with store.open(f"{part.sha256}{PARQUET}") as file:
            texts = pl.read_parquet(file, columns=["decisions"])["decisions"].unique().to_list()
        guided = {text: compact_json([guide(each) for each in _decode(text)]) for text in texts}
        is_same = all(text == made for text, made in guided.items())
        parts += [part] if is_same else _rewrite(store, part, partial(_with_tasks, guided))
    definitions = [
        msgspec.structs.replace(
            definition,
            decision=msgspec.Raw(compact_json(guide(_decode(definition.decision))).encode()),
        )
        for definition in load_definitions(store, manifest)
    ]
    stored = store.put(msgspec.json.encode(definitions), JSON)
    return msgspec.structs.replace(manifest, parts=tuple(parts), definitions=stored)


def _with_tasks(tasks: Mapping[str, str], rows: pa.Table) -> pa.Table:
    texts = [tasks[text] for text in rows["decisions"].to_pylist()]
    place = STORED_SCHEMA.get_field_index("decisions")
    return rows.set_column(place, STORED_SCHEMA.field(place), pa.array(texts, pa.string()))


def _forget_wordings(store: FrameStore, manifest: Manifest) -> Manifest:
    """Return a version without wordings that no row has, of decisions that are worded otherwise.

    Rows of CSV name a decision by its id: one wording of it must be left for them.
    """
    definitions = load_definitions(store, manifest)
    ids = {
        definition.id for definition in definitions if definition.training + definition.evaluation
    }
    left = [
        definition
        for definition in definitions
        if definition.training + definition.evaluation or definition.id not in ids
    ]
    if len(left) == len(definitions):
        return manifest
    return msgspec.structs.replace(manifest, definitions=store.put(msgspec.json.encode(left), JSON))


def _without(store: FrameStore, previous: Manifest, excluded: Places, replaced: Places) -> Manifest:
    """Return a version without some rows, its number still that of the version."""
    removed = np.sort(np.concatenate([excluded, replaced]))
    if len(removed) == 0:
        return previous
    gone = _rows_at(store, previous, removed)
    parts: list[Part] = []
    for part in previous.parts:
        inside = removed[
            np.searchsorted(removed, part.first) : np.searchsorted(removed, part.last, side="right")
        ]
        parts += (
            [part] if len(inside) == 0 else _rewrite(store, part, partial(_without_rows, inside))
        )
    contexts = scan_contexts(store, parts)
    split = Split(
        training=sum(part.rows for part in parts if part.side == "training"),
        evaluation=sum(part.rows for part in parts if part.side == "evaluation"),
        training_contexts=contexts["training"],
        evaluation_contexts=contexts["evaluation"],
    )
    hashes = sorted(gone["row_sha256"])
    definitions = _uncount(load_definitions(store, previous), gone)
    return msgspec.structs.replace(
        previous,
        sha256=hash_without(hashes, previous.sha256),
        rows=split.training + split.evaluation,
        contexts=split.training_contexts + split.evaluation_contexts,
        split=split,
        evaluation_only=previous.evaluation_only,
        parts=tuple(parts),
        definitions=store.put(msgspec.json.encode(definitions), JSON),
        places=previous.next_index,
        retired=_retire(store, previous, gone.filter(pl.col("index").is_in(excluded.tolist()))),
    )


def scan_contexts(store: FrameStore, parts: Sequence[Part]) -> dict[Side, int]:
    """Count the contexts of each side in some parts."""
    counts: dict[Side, int] = {}
    for side in SIDES:
        hashes = [pl.Series("context_sha256", [], dtype=pl.Binary)]
        for part in parts:
            if part.side == side:
                with store.open(f"{part.sha256}.parquet") as file:
                    hashes.append(pl.read_parquet(file, columns=["context_sha256"]).to_series())
        counts[side] = pl.concat(hashes).n_unique()
    return counts


def _rows_at(store: FrameStore, manifest: Manifest, places: Places) -> pl.DataFrame:
    selected = pl.Series("index", places, dtype=pl.Int64).to_frame().lazy()
    frame = scan(store, manifest).select(
        "index", "side", "decisions", "labels", "extra", "context_sha256", "row_sha256"
    )
    with store.reading(*manifest.part_names()):
        return frame.join(selected, on="index").sort("index").collect()


def _without_rows(removed: Places, rows: pa.Table) -> pa.Table:
    return rows.filter(pa.array(~np.isin(rows["index"].to_numpy(), removed)))


def _rewrite(store: FrameStore, part: Part, change: Callable[[pa.Table], pa.Table]) -> list[Part]:
    """Write a part again with its rows changed, a group in memory at a time."""
    with contextlib.ExitStack() as owner:
        writer = PartWriter(store, part.side, owner)
        with store.open(f"{part.sha256}{PARQUET}") as file:
            for rows in _groups(file):
                writer.add(change(rows))
        return writer.finish()


def _groups(file: object) -> Iterator[pa.Table]:
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    for group in range(parquet.num_row_groups):
        yield parquet.read_row_group(group).cast(STORED_SCHEMA)


def _uncount(definitions: list[Definition], gone: pl.DataFrame) -> list[Definition]:
    """Subtract removed rows from the counts; a wording without rows stays."""
    counts = {
        (definition.id, definition.fingerprint): msgspec.structs.asdict(definition)
        for definition in definitions
    }
    for (decisions,), rows in gone.group_by("decisions"):
        task, _ = read_task({"decisions": msgspec.json.decode(str(decisions))}, Violations())
        if task is None:
            raise RuntimeError("A stored row asks what no row can ask.")
        training = rows.filter(pl.col("side") == "training")
        tops = Counter(
            (label["decision"], label["outcome"])
            for labels in training["labels"].to_list()
            for label in labels
            if label["is_top"]
        )
        for decision in task.decisions:
            fields = counts[decision.id, decision.fingerprint.hex()]
            fields["training"] -= len(training)
            fields["evaluation"] -= len(rows) - len(training)
            fields["expected"] = {
                outcome: count - tops[decision.id, outcome]
                for outcome, count in fields["expected"].items()
                if count > tops[decision.id, outcome]
            }
    return [Definition(**fields) for _, fields in sorted(counts.items())]


def _retire(store: FrameStore, previous: Manifest, excluded: pl.DataFrame) -> str | None:
    """Keep the records of excluded rows: their sides, and their sources."""
    known = load_retired(store, previous)
    frame = excluded.select("context_sha256", "side", "extra")
    frame = frame if known is None else pl.concat([known, frame])
    if frame.is_empty():
        return None
    file_bytes = io.BytesIO()
    frame.write_parquet(file_bytes, compression="zstd")
    return store.put(file_bytes.getvalue(), PARQUET)
