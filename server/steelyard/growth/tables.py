"""Growths of named decisions."""

from sqlalchemy import Column, Double, ForeignKey, LargeBinary, Table, Text

from steelyard.storage.tables import metadata

#: What a named decision may do by itself, and how far it is; ``policy`` and ``state`` are JSON. A turn
#: claims its row, so that no two processes make one at a time.
growths = Table(
    "growths",
    metadata,
    Column(
        "named_id", Text, ForeignKey("named_decisions.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("key_id", Text),
    Column("name", Text, nullable=False),
    Column("policy", LargeBinary, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("set_at", Double, nullable=False),
    Column("turned_at", Double, nullable=False),
    Column("claimed_until", Double, nullable=False),
    Column("stopped_at", Double),
)
