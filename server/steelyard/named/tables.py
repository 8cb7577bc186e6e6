"""Named decisions, their versions, and the aliases that point to these."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from steelyard.storage.tables import metadata


def _of_decision(*, primary_key: bool = False) -> Column[str]:
    refers = ForeignKey("named_decisions.id", ondelete="CASCADE")
    return Column("named_id", Text, refers, nullable=False, primary_key=primary_key)


named_decisions = Table(
    "named_decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("owner", Text),
    Column("dataset_id", Text),
    Column("created_at", Double, nullable=False),
    Column("archived_at", Double),
    UniqueConstraint("account_id", "name"),
    Index(None, "account_id", "created_at"),
)

#: Versions, which never change; ``content`` is JSON, and ``sha256`` its hash.
named_versions = Table(
    "named_versions",
    metadata,
    Column("id", Text, primary_key=True),
    _of_decision(),
    Column("number", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("note", Text),
    Column("made_by", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("named_id", "number"),
    UniqueConstraint("named_id", "sha256"),
)

#: Which version each alias points to.
named_aliases = Table(
    "named_aliases",
    metadata,
    _of_decision(primary_key=True),
    Column("alias", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("moved_at", Double, nullable=False),
)

#: Every move of an alias; the first has no version before it.
named_moves = Table(
    "named_moves",
    metadata,
    Column("id", Text, primary_key=True),
    _of_decision(),
    Column("alias", Text, nullable=False),
    Column("from_number", Integer),
    Column("to_number", Integer, nullable=False),
    Column("moved_by", Text, nullable=False),
    Column("reason", Text),
    Column("created_at", Double, nullable=False),
    Index(None, "named_id", "created_at"),
)
