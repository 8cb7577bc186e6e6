"""Views of the workbench that were saved."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Index, Table, Text, UniqueConstraint

from steelyard.storage.tables import metadata

#: ``address`` is what stands behind ``?`` in the workbench's address.
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
