"""Rows of passkeys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from steelyard.people.tables import passkeys, users
from steelyard.storage.rows import Rows

PASSKEYS = Rows(passkeys)


def lock_user(connection: Connection, user_id: str) -> None:
    """Lock a user's row, so that others that add to it wait."""
    connection.execute(select(users.c.id).where(users.c.id == user_id).with_for_update())


def insert_passkey(connection: Connection, **values: Any) -> Row[Any]:
    """Write a new passkey; the values are by column of ``tables.passkeys``."""
    connection.execute(insert(passkeys).values(**values))
    return connection.execute(select(passkeys).where(passkeys.c.id == values["id"])).one()


def passkeys_of(connection: Connection, user_id: str) -> Sequence[Row[Any]]:
    """Return a user's passkeys, the newest first."""
    table = passkeys.c
    return connection.execute(
        select(passkeys)
        .where(table.user_id == user_id)
        .order_by(table.created_at.desc(), table.id.desc())
    ).all()


def find_passkey(connection: Connection, credential_id: str) -> Row[Any] | None:
    """Return a passkey and its user's address, by its credential id."""
    return connection.execute(
        select(passkeys, users.c.email)
        .join(users, users.c.id == passkeys.c.user_id)
        .where(passkeys.c.credential_id == credential_id)
    ).first()
