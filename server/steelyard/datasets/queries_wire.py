"""What may stand after the ``?`` of the addresses of datasets."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.datasets.wire import DEFAULT_PAGE_ROWS, MAX_PAGE_ROWS, Fraction, Partition
from steelyard.wire.queries import MAX_NUMBER, MAX_PAGE, Cursor, PageSize

Version = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
Offset = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
RowsLimit = Annotated[int, Meta(ge=1, le=MAX_PAGE_ROWS)]
_OF_VERSION = Meta(description="A version; the latest by default.")
_OF_PARTITION = Meta(description="One side, or all rows.")


class CreateQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of a new dataset whose body is rows alone."""

    name: str | None = None
    evaluation_fraction: Fraction | None = None
    max_price_usd: str | None = None


class AddRowsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of added rows whose body is rows alone."""

    evaluation_fraction: Fraction | None = None
    max_price_usd: str | None = None
    family: str | None = None


class DatasetsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of the account's datasets."""

    archived: Annotated[bool, Meta(description="Archived datasets instead of the others.")] = False
    limit: Annotated[PageSize, Meta(description="Datasets of a page.")] = MAX_PAGE
    cursor: Annotated[
        Cursor | None, Meta(description="`next_cursor` of the page before; the first by default.")
    ] = None


class VersionQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which rows of a dataset."""

    partition: Annotated[Partition, _OF_PARTITION] = "all"
    version: Annotated[Version | None, _OF_VERSION] = None


class RowsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of a dataset's rows."""

    offset: Annotated[Offset, Meta(description="Rows before the page.")] = 0
    limit: Annotated[RowsLimit, Meta(description="Rows of the page.")] = DEFAULT_PAGE_ROWS
    partition: Annotated[Partition, _OF_PARTITION] = "all"
    version: Annotated[Version | None, _OF_VERSION] = None


class ExportQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which rows of a dataset, and as what."""

    format: Annotated[Literal["parquet"], Meta(description="Format of the file.")] = "parquet"
    partition: Annotated[Partition, _OF_PARTITION] = "all"
    version: Annotated[Version | None, _OF_VERSION] = None


class DiffQuery(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}
):
    """Which two versions."""

    from_: Annotated[
        Version | None, Meta(description="The older one; the one before `to` by default.")
    ] = None
    to: Annotated[Version | None, Meta(description="The newer one; the latest by default.")] = None
