"""Which rows a difference of two versions is about; the server's own difference only counts them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from steelyard.client import Client

_LABELS = ("targets", "rewards")


@dataclass(frozen=True, slots=True, order=True)
class Transition:
    """A decision whose label went from one outcome to another."""

    decision: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The rows of a difference by their places."""

    removed: list[int]
    relabelled: Mapping[Transition, list[int]]


def fetch_changes(client: Client, dataset_id: str, older: int, newer: int) -> RowChanges:
    """Find the rows of a difference; both versions are fetched whole."""
    before, after = (
        _read(client.datasets.export(dataset_id, version=version)) for version in (older, newer)
    )
    return find_changes(before, after)


def find_changes(before: pl.DataFrame, after: pl.DataFrame) -> RowChanges:
    """Compare two versions.

    Their frames have ``index``, ``context_sha256``, and ``labels``: a list of structs of decision,
    outcome and value. A row keeps its index from version to version.
    """
    removed = before.join(after, on="index", how="anti")["index"].sort().to_list()
    added = after.join(before, on="index", how="anti")
    moved = (
        _expected(before)
        .select("context_sha256", "decision", before="outcome")
        .unique()
        .join(
            _expected(added).select("index", "context_sha256", "decision", after="outcome"),
            on=["context_sha256", "decision"],
        )
        .filter(pl.col("before") != pl.col("after"))
        .group_by("decision", "before", "after")
        .agg(pl.col("index").unique().sort())
    )
    return RowChanges(
        removed,
        {
            Transition(decision, old, new): indexes
            for decision, old, new, indexes in moved.select(
                "decision", "before", "after", "index"
            ).rows()
        },
    )


def _read(data: bytes) -> pl.DataFrame:
    [labels] = [name for name in pl.read_parquet_schema(io.BytesIO(data)) if name in _LABELS]
    frame = pl.read_parquet(io.BytesIO(data), columns=["index", "context_sha256", labels])
    return frame.rename({labels: "labels"})


def _expected(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the outcome that each label expects most; the first on a tie."""
    return (
        frame.explode("labels")
        .drop_nulls("labels")
        .unnest("labels")
        .sort("value", descending=True, maintain_order=True)
        .unique(["index", "decision"], keep="first", maintain_order=True)
    )
