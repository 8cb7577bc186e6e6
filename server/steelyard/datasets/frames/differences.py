"""The differences between two versions of a dataset."""

from __future__ import annotations

import polars as pl

from steelyard.datasets.filters import IndexFilter
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.searches import Relabelled, VersionDiff
from steelyard.datasets.versions import Manifest
from steelyard.storage.frame_store import FrameStore

_KEY = ("context_sha256", "decision")


def compare_versions(store: FrameStore, older: Manifest, newer: Manifest) -> VersionDiff:
    """Return the rows that a version adds and removes against an older one, and those with another label."""
    facets = RowStore(store).facets(newer, where=IndexFilter(at_least=older.next_index))
    frame = scan(store, newer)
    is_added = pl.col("index") >= older.next_index
    decisions = (
        frame.filter(is_added)
        .select(decision=pl.col("asked"))
        .explode("decision")
        .group_by("decision")
        .len()
        .sort("decision")
    )
    before = _expected(scan(store, older), "before")
    after = _expected(frame.filter(is_added), "after")
    stays = _expected(frame.filter(~is_added), "before").with_columns(stays=True)
    relabelled = (
        before.join(after, on=list(_KEY))
        .filter(pl.col("before") != pl.col("after"))
        .join(stays, on=[*_KEY, "before"], how="left")
        .group_by("decision", "before", "after")
        .agg(pl.len(), pl.col("stays").sum())
        .sort("len", "decision", "before", "after", descending=[True, False, False, False])
    )
    known = scan(store, older).select("context_sha256")
    contexts = (
        frame.filter(is_added)
        .select("context_sha256")
        .unique()
        .join(known, on="context_sha256", how="anti")
        .select(pl.len())
    )
    with store.reading(*older.part_names(), *newer.part_names()):
        decision_rows, moved, added = pl.collect_all([decisions, relabelled, contexts])
    n_remaining = newer.rows - facets.rows
    return VersionDiff(
        from_=older.version,
        to=newer.version,
        rows=facets.rows,
        removed=older.rows - n_remaining,
        first=older.next_index if facets.rows else None,
        contexts=int(added.item()),
        sides=facets.sides,
        asked=dict(decision_rows.rows()),
        expected=facets.expected,
        relabelled=[
            Relabelled(decision=decision, before=old, after=new, contexts=count, both=n_both)
            for decision, old, new, count, n_both in moved.rows()
        ],
    )


def _expected(rows: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Return the outcomes that rows expect, by context and decision."""
    tops = rows.select("context_sha256", "labels").explode("labels").unnest("labels")
    return tops.filter("is_top").select(*_KEY, pl.col("outcome").alias(name)).unique()
