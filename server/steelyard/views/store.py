"""Rows of saved views."""

from __future__ import annotations

from sqlalchemy import Connection, select

from steelyard.storage.rows import Rows
from steelyard.views.tables import views

VIEWS = Rows(views)


def has_name(connection: Connection, account_id: str, name: str) -> bool:
    """Whether an account has a view of a name."""
    named = select(views.c.id).where(views.c.account_id == account_id, views.c.name == name)
    return connection.execute(named).first() is not None
