"""Named decisions, their versions, and the aliases that point to these."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
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

#: Every move of an alias; the first has no version before it. ``verdict`` is that of the comparison
#: ``comparison_id``, and ``overruled`` says why it was moved in spite of it, or without one.
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
    Column("comparison_id", Text),
    Column("verdict", Text),
    Column("overruled", Text),
    Index(None, "named_id", "created_at"),
)

#: Shares of an alias's requests that another alias answers; of each alias one at a time has no end.
#: ``figures`` is JSON: how often the two were right on feedback.
named_shares = Table(
    "named_shares",
    metadata,
    Column("id", Text, primary_key=True),
    _of_decision(),
    Column("alias", Text, nullable=False),
    Column("to_alias", Text, nullable=False),
    Column("from_number", Integer, nullable=False),
    Column("to_number", Integer, nullable=False),
    Column("share", Double, nullable=False),
    Column("started_by", Text, nullable=False),
    Column("reason", Text),
    Column("created_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("ended_by", Text),
    Column("ended_reason", Text),
    Column("figures", LargeBinary),
    Column("ramp", LargeBinary),
    Index(None, "named_id", "created_at"),
)

#: Comparisons of two versions. ``progress`` is what was answered, ``result`` what it came to: JSON, as
#: is ``error``. A model's id is the base model's name or the adapter.
named_comparisons = Table(
    "named_comparisons",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    _of_decision(),
    Column("name", Text, nullable=False),
    Column("dataset_id", Text, index=True),
    Column("dataset_version", Integer),
    *job_columns(),
    Column("from_number", Integer, nullable=False),
    Column("to_number", Integer, nullable=False),
    Column("from_model_id", Text, nullable=False),
    Column("to_model_id", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("stored", Integer, nullable=False),
    Column("contexts", Integer, nullable=False),
    Column("completed_contexts", Integer, nullable=False),
    Column("price_nano", BigInteger, nullable=False),
    Column("charge", Text, nullable=False),
    Column("verdict", Text),
    Column("progress", LargeBinary),
    Column("result", LargeBinary),
    Column("error", LargeBinary),
    status_check(),
    CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
    Index(None, "account_id", "created_at"),
    Index(None, "named_id", "created_at"),
)
