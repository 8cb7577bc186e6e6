"""Queries on the wire: the parameters after the ``?`` of an address."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from msgspec import Meta, Struct

from steelyard.wire.schemas import doc

Item = TypeVar("Item")

MAX_PAGE = 200
#: The largest number of a version, a row or a place: that of the state's columns.
MAX_NUMBER = 2**31 - 1

Cursor = Annotated[str, Meta(min_length=1, max_length=64)]
#: Where a page begins.
NextCursor = Annotated[
    Cursor | None, doc("`next_cursor` of the page before; the first by default.")
]
PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE)]
#: Statuses of what is listed, such as ``OneOf[JobStatus]``; all where there is none.
OneOf = Annotated[
    list[Item], doc("Those with one of these statuses; repeated, or separated by commas.")
]
#: What rows are exported as: CSV, Parquet, or a zip of a folder of Hugging Face ``datasets``.
ExportFormat = Literal["csv", "parquet", "hf"]
ExportedAs = Annotated[
    ExportFormat, doc("Parquet, CSV, or a zip of a folder that Hugging Face `datasets` loads.")
]


class CursorPage(Struct, Generic[Item], frozen=True, kw_only=True):
    """Things of a list, and where the next page begins."""

    data: list[Item]
    has_more: bool
    next_cursor: str | None


class PageQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of a list."""

    limit: Annotated[PageSize, doc("The most entries of a page.")] = MAX_PAGE
    cursor: NextCursor = None


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Nothing: the query of a route that takes none."""


class ApiKeysQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the account's keys."""

    revoked: Annotated[
        bool | None, doc("Revoked keys alone, or the others alone; both by default.")
    ] = None
