"""The one metadata of the state, and the accounts and keys that rows of every room belong to.

Each room has its own tables in ``tables.py``; a new state is made from them, and migrations leave an older one as they say.

Money is in integers of nano-USD, times are Unix seconds, hashes are lower-case hex SHA-256.
"""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: The newest migration that the oldest version knows which works on these tables; one row.
oldest_version = sa.Table("oldest_version", metadata, sa.Column("head", sa.Text, primary_key=True))


def store_setting() -> sa.Column[str]:
    """Return the column of the most that is stored of answers."""
    return sa.Column("store", sa.Text, nullable=False, server_default="on")


#: Who owns resources and pays. The account ``local`` is there from the start.
#: ``deletes_at`` is when an account's data is removed, where its owner asked for that.
accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("deletes_at", sa.Double, index=True),
    store_setting(),
)

#: Keys by their hash; ``prefix`` is the part of a key that is no secret. ``made_by`` is the address
#: of the member that made one in the console, with its ``role`` then.
api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("prefix", sa.Text, nullable=False, unique=True),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("monthly_cap_nano", sa.BigInteger),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("last_used_at", sa.Double),
    sa.Column("revoked_at", sa.Double),
    sa.Column("expires_at", sa.Double),
    sa.Column("made_by", sa.Text),
    sa.Column("role", sa.Text),
    store_setting(),
    sa.CheckConstraint("scope IN ('full', 'inference', 'read')", name="scope"),
)


@sa.event.listens_for(oldest_version, "after_create")
def _add_oldest(table: sa.Table, connection: sa.Connection, **_: Any) -> None:
    connection.execute(table.insert().values(head=""))  # written after the last migration


@sa.event.listens_for(accounts, "after_create")
def _add_local(table: sa.Table, connection: sa.Connection, **_: Any) -> None:
    connection.execute(table.insert().values(id="local", name="local", created_at=time.time()))
