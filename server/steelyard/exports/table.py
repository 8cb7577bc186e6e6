"""A table to export: columns, and batches of rows that are made on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an export.

    ``names`` are those of the classes that its texts are: a folder of ``datasets`` has their numbers,
    and the names as a feature.
    """

    name: str
    type: pa.DataType
    about: str
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTable:
    """The rows of one subject.

    ``rows`` makes batches of all of them, with ``schema``; ``splits`` makes those of each part by the
    name that ``datasets`` has for it. Each call begins anew.
    """

    title: str
    about: str
    columns: tuple[Column, ...]
    rows: Callable[[], Batches]
    splits: Mapping[str, Callable[[], Batches]]

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them; each cell may be null."""
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])


def codes_of(values: pa.Array, names: Sequence[str]) -> pa.Array:
    """Return the number of each value's class; null where it has none."""
    return pc.index_in(values, value_set=pa.array(names, pa.string())).cast(pa.int64())
