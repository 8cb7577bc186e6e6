"""Tables of judges' qualifications."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from steelyard.storage.tables import metadata

#: Qualifications of judges, never changed; ``body`` is JSON. ``account_id``: whose dataset was asked.
judge_qualifications = Table(
    "judge_qualifications",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("judge", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("judge", "number"),
)
