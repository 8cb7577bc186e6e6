"""Tables of requests in the last minute, counted together by several hosts."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Table, Text

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
