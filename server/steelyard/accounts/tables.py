"""The table of requests in the last minute, counted by several hosts, and one no longer read."""

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Table, Text, UniqueConstraint

from steelyard.storage.tables import metadata

#: A caller's running minute by its number, what was taken of it, and of the one before. Nothing in
#: it is worth keeping for longer than two minutes. On SQLite it stays empty.
rate_windows = Table(
    "rate_windows",
    metadata,
    Column("key", Text, primary_key=True),
    Column("number", BigInteger, nullable=False, index=True),
    Column("previous", BigInteger, nullable=False),
    Column("current", BigInteger, nullable=False),
)

#: Views of the workbench that 0.2 saved. Nothing reads them; the release after this one drops the table.
views = Table(
    "views",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("account_id", "name"),
    Index(None, "account_id", "created_at"),
)
