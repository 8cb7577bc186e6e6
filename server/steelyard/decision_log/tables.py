"""Tables of answers stored for feedback, and of outcomes."""

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

from steelyard.jobs.tables import job_columns, status_check
from steelyard.storage.tables import metadata

#: Answers kept for feedback; ``request``, ``results``, ``outcome_names`` and ``metadata`` are JSON,
#: ``total_ms`` is what the answer took and ``key_id`` the key that called, where they are known;
#: ``named`` is the version of a named decision, such as ``support_triage@7``, and ``named_alias`` the
#: alias that pointed to it.
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
    Column("named", Text),
    Column("named_alias", Text),
    Index(None, "account_id", "created_at"),
)

#: The outcome observed for one decision of an answer; ``outcome`` is JSON, ``origin`` is where it came
#: from and ``who`` reported it, both null where the report did not say.
feedback = Table(
    "feedback",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("outcome", LargeBinary, nullable=False),
    Column("recorded_at", Double, nullable=False, index=True),
    Column("origin", Text),
    Column("who", Text),
)

#: Files of an account's answers of one day (``day`` days after 1970 in UTC), in order of time and id:
#: ``last_at`` and ``last_id`` are those of the last one. ``is_cleared`` is 0 while rows of the file may
#: be in the state too.
decision_files = Table(
    "decision_files",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("day", Integer, nullable=False),
    Column("first_at", Double, nullable=False),
    Column("last_at", Double, nullable=False, index=True),
    Column("last_id", Text, nullable=False),
    Column("least_id", Text, nullable=False),
    Column("greatest_id", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("is_cleared", Integer, nullable=False),
    Index(None, "account_id", "last_at"),
)

#: The move of an account's day to files, once for ever; ``error`` is JSON.
decision_archivings = Table(
    "decision_archivings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("day", Integer, nullable=False),
    *job_columns(),
    Column("error", LargeBinary),
    status_check(),
    UniqueConstraint("account_id", "day"),
)
