"""Jobs of prompt tuning."""

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
)

from steelyard.jobs.tables import job_columns, status_check
from steelyard.storage.tables import metadata

#: The tuning of a decision's wording. ``asked`` is the decision as the rows word it, ``search`` how
#: far the search is, ``result`` what it proved: JSON, as is ``error``. ``model_id`` is the base
#: model's name or the adapter, ``model`` how it is shown.
prompt_tunings = Table(
    "prompt_tunings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("dataset_id", Text, nullable=False, index=True),
    Column("dataset_version", Integer, nullable=False),
    *job_columns(),
    Column("model", Text, nullable=False),
    Column("model_id", Text, nullable=False),
    Column("model_sha256", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("asked", LargeBinary, nullable=False),
    Column("effort", Text, nullable=False),
    Column("price_nano", BigInteger, nullable=False),
    Column("charge", Text, nullable=False),
    Column("search", LargeBinary),
    Column("result", LargeBinary),
    Column("error", LargeBinary),
    Column("dismissed_at", Double),
    status_check(),
    CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
    CheckConstraint("effort IN ('standard', 'thorough')", name="effort"),
    Index(None, "account_id", "created_at"),
)
