"""One version of a dataset and its rows, as work that reads them gets them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.rows import hash_context
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import Side, Split
from steelyard.operations.write import payload_sha256
from steelyard.wire.decoding import decoder_of
from steelyard.wire.methods import Method

#: Decision to outcome to target or reward.
Labels = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class DatasetAt:
    """One version of a dataset, for work that reads it."""

    dataset_id: str
    name: str
    manifest: Manifest

    @property
    def version(self) -> int:
        """Number of the version, from 1."""
        return self.manifest.version

    @property
    def method(self) -> Method:
        """``sft`` (targets) or ``reward``."""
        return self.manifest.method

    @property
    def sha256(self) -> str:
        """Names every row of the version."""
        return self.manifest.sha256

    @property
    def evaluation_sha256(self) -> str:
        """Names the evaluation rows, in order: equal for versions that add training rows alone."""
        parts = [part.sha256 for part in self.manifest.parts_of("evaluation")]
        return payload_sha256(parts)

    @property
    def split(self) -> Split:
        """Rows and contexts by side."""
        return self.manifest.split


class StoredExample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored row, decoded; fields beside it are skipped."""

    context: Any
    decisions: list[dict[str, Any]]
    targets: Labels | None = None
    rewards: Labels | None = None
    images: list[dict[str, Any]] | None = None
    metadata: dict[str, Any] | None = None

    @property
    def labels(self) -> Labels:
        """Its targets, or its rewards."""
        return self.targets or self.rewards or {}


class LabelledRow(StoredExample, frozen=True, kw_only=True, gc=False):
    """One row of a version, for work that reads it."""

    index: int
    context_sha256: str


decode_example = decoder_of(StoredExample).decode


def read_side(rows: RowStore, at: DatasetAt, side: Side, start: int = 0) -> Iterator[LabelledRow]:
    """Yield the rows of a side in the order of the dataset, from one on."""
    for row in rows.iterate_side(at.manifest, side, start):
        sent = decode_example(row.json)
        yield LabelledRow(
            index=row.index,
            context_sha256=hash_context(sent.context, sent.images).hex(),
            **msgspec.structs.asdict(sent),
        )
