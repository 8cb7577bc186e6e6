"""Rows of saved views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from steelyard.storage.pages import RowPage, newest_first
from steelyard.storage.tables import accounts
from steelyard.views.tables import views


def lock_account(connection: Connection, account_id: str) -> None:
    """Keep other writers of the account's views out until the transaction ends."""
    connection.execute(select(accounts.c.id).where(accounts.c.id == account_id).with_for_update())


def count_views(connection: Connection, account_id: str) -> int:
    """Return how many views an account has."""
    counted = select(func.count()).where(views.c.account_id == account_id)
    return connection.execute(counted).scalar_one()


def has_name(connection: Connection, account_id: str, name: str) -> bool:
    """Whether an account has a view of a name."""
    named = select(views.c.id).where(views.c.account_id == account_id, views.c.name == name)
    return connection.execute(named).first() is not None


def insert_view(connection: Connection, values: Mapping[str, Any]) -> None:
    """Add a view."""
    connection.execute(insert(views), dict(values))


def find_view(connection: Connection, account_id: str, view_id: str) -> Row[Any] | None:
    """Return a view of an account."""
    return connection.execute(
        select(views).where(views.c.account_id == account_id, views.c.id == view_id)
    ).first()


def page_of_views(
    connection: Connection, account_id: str, *, limit: int, cursor: str | None
) -> RowPage:
    """Return a page of an account's views, the newest first."""
    owned = views.c.account_id == account_id
    return newest_first(connection, views, owned=owned, limit=limit, cursor=cursor)


def delete_view(connection: Connection, view_id: str) -> None:
    """Remove a view."""
    connection.execute(delete(views).where(views.c.id == view_id))
