"""Saved views on the wire. Times are Unix seconds."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from steelyard.wire.queries import MAX_PAGE, CursorPage, NextCursor, PageSize
from steelyard.wire.schemas import SINGLE_LINE

#: The most characters of an address: it has to be one that browsers and proxies take.
MAX_ADDRESS = 4000

_Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=80,
        pattern=SINGLE_LINE,
        description="For people; no two views of an account share one.",
    ),
]
_Address = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_ADDRESS,
        description="What stands behind `?` in the workbench's address, such as "
        "`page=review&draft=dr_1`.",
    ),
]


class SaveView(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A view to keep under a name."""

    name: _Name
    address: _Address


class View(Struct, frozen=True, kw_only=True):
    """A view of the workbench that was saved."""

    id: str
    name: str
    address: Annotated[str, Meta(description="What stands behind `?` in the workbench's address.")]
    created_at: float


class ViewsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of the account's views."""

    limit: Annotated[PageSize, Meta(description="Views of a page.")] = MAX_PAGE
    cursor: NextCursor = None


class ViewPage(CursorPage[View], frozen=True):
    """A page of views, newest first."""


class DeletedView(Struct, frozen=True, kw_only=True):
    """A removed view; its dataset stays."""

    id: str
    deleted: bool
