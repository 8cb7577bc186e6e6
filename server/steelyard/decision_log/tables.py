"""Answers kept for feedback, and what came true."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Index, LargeBinary, Table, Text

from steelyard.storage.tables import metadata

#: Answers kept for feedback; ``request``, ``results``, ``outcome_names`` and ``metadata`` are JSON,
#: ``total_ms`` is what the answer took and ``key_id`` the key that called, where they are known.
decisions = Table(
    "decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("created_at", Double, nullable=False, index=True),
    Column("model", Text, nullable=False),
    Column("version", Text),
    Column("request", LargeBinary, nullable=False),
    Column("results", LargeBinary, nullable=False),
    Column("outcome_names", LargeBinary, nullable=False),
    Column("metadata", LargeBinary),
    Column("total_ms", Double),
    Column("key_id", Text),
    Index(None, "account_id", "created_at"),
)

#: The outcome observed for one decision of an answer; ``outcome`` is JSON.
feedback = Table(
    "feedback",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("outcome", LargeBinary, nullable=False),
    Column("recorded_at", Double, nullable=False, index=True),
)
