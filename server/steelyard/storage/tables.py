"""The one metadata of the state, and the accounts and keys that rows of every room belong to.

Each room has its own tables in ``tables.py``; a new state is made from them, and migrations leave an older one as they say.

Money is in integers of nano-USD, times are Unix seconds, hashes are lower-case hex SHA-256.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    MetaData,
    Table,
    Text,
    event,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: The newest migration that the oldest version knows which works on these tables; one row.
oldest_version = Table("oldest_version", metadata, Column("head", Text, primary_key=True))

#: Who owns resources and pays. The account ``local`` is there from the start.
#: ``deletes_at`` is when all that an account has is removed, where somebody asked for that.
accounts = Table(
    "accounts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
    Column("deletes_at", Double, index=True),
)

#: Keys by their hash; ``prefix`` is the part of a key that is no secret. ``made_by`` is the address
#: of the member that made one in the console, with its ``role`` then.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False, unique=True),
    Column("sha256", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("monthly_cap_nano", BigInteger),
    Column("created_at", Double, nullable=False),
    Column("last_used_at", Double),
    Column("revoked_at", Double),
    Column("expires_at", Double),
    Column("made_by", Text),
    Column("role", Text),
    CheckConstraint("scope IN ('full', 'inference', 'read')", name="scope"),
)


@event.listens_for(oldest_version, "after_create")
def _add_oldest(table: Table, connection: Connection, **_: Any) -> None:
    connection.execute(table.insert().values(head=""))  # written after the last migration


@event.listens_for(accounts, "after_create")
def _add_local(table: Table, connection: Connection, **_: Any) -> None:
    connection.execute(table.insert().values(id="local", name="local", created_at=time.time()))
