"""Pages of a table's rows, the newest first, by a cursor that names the item before the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, or_, select

from steelyard.errors import InvalidRequestError

#: The most items of a page, and how many one has when nothing is said.
MAX_PAGE = 200
MAX_CURSOR = 64

Page = TypeVar("Page")


@dataclass(frozen=True, slots=True)
class OrderedPage:
    """Some rows in order."""

    rows: list[Row[Any]]
    next_cursor: str | None

    def to_wire(self, page_type: Callable[..., Page], data: Sequence[Any]) -> Page:
        """Return the page as the wire has it, with its items in place of the rows."""
        has_more = self.next_cursor is not None
        return page_type(data=data, has_more=has_more, next_cursor=self.next_cursor)


def newest_first(
    connection: Connection,
    table: Table,
    *,
    owned: ColumnElement[bool],
    where: Sequence[ColumnElement[bool]] = (),
    limit: int = MAX_PAGE,
    cursor: str | None = None,
    by: str = "created_at",
) -> OrderedPage:
    """Return a page of a table with the column ``id`` and one of times."""
    if not 1 <= limit <= MAX_PAGE:
        raise _refusal("limit", f"limit is not 1 to {MAX_PAGE}.", "out_of_range")
    conditions = [owned, *where]
    if cursor is not None:
        conditions.append(after_cursor(connection, table, owned, cursor, by))
    rows = connection.execute(
        select(table)
        .where(*conditions)
        .order_by(table.c[by].desc(), table.c.id.desc())
        .limit(limit + 1)
    ).all()
    page = list(rows[:limit])
    return OrderedPage(page, page[-1].id if len(rows) > limit else None)


def after_cursor(
    connection: Connection,
    table: Table,
    owned: ColumnElement[bool],
    cursor: str,
    by: str = "created_at",
) -> ColumnElement[bool]:
    """Return the condition that a row comes after that of a cursor, the newest being first."""
    row = None
    if 0 < len(cursor) <= MAX_CURSOR and cursor.isascii() and cursor.isprintable():
        row = connection.execute(
            select(table.c[by].label("at"), table.c.id).where(owned, table.c.id == cursor)
        ).first()
    if row is None:
        raise unknown_cursor()
    return comes_after(table, row.at, row.id, by)


def comes_after(table: Table, at: float, id_: str, by: str = "created_at") -> ColumnElement[bool]:
    """Return the condition that a row comes after another's, the newest being first."""
    return or_(table.c[by] < at, and_(table.c[by] == at, table.c.id < id_))


def unknown_cursor() -> InvalidRequestError:
    """Return the error for a cursor that names no item."""
    return _refusal(
        "cursor", "cursor names no item of this list; start without one.", "unknown_cursor"
    )


def _refusal(name: str, message: str, type_: str) -> InvalidRequestError:
    return InvalidRequestError.at(("query", name), message, type_)
