"""Tables of families, their models, fine-tunes and keep warm."""

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

from steelyard.jobs.tables import job_columns
from steelyard.storage.tables import metadata

#: Where an account's lineage is in its history: ``revision`` counts its changes, and
#: ``n_windows`` the hours of keep warm that were ever held.
account_lines = Table(
    "account_lines",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("n_windows", Integer, nullable=False),
)

#: Families by name; ``body`` is JSON: all that is kept of one.
families = Table(
    "families",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("dataset_id", Text, nullable=False, index=True),
    Column("created_at", Double, nullable=False),
    Column("deleted_at", Double),
    Column("body", LargeBinary, nullable=False),
)

#: Models of families, also those that are gone; ``adapter`` is their identity and ``body``
#: is JSON. A number is given once.
tuned_models = Table(
    "tuned_models",
    metadata,
    Column("adapter", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("family", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    CheckConstraint("status IN ('ready', 'deleted', 'discarded')", name="status"),
    UniqueConstraint("account_id", "family", "version"),
)

#: Fine-tunes. ``body``, ``progress`` and ``curve`` are JSON, the hashes name what it made in the
#: stores of artifacts and of records.
fine_tunes = Table(
    "fine_tunes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("family", Text, nullable=False),
    Column("dataset_id", Text, nullable=False, index=True),
    Column("dataset_version", Integer, nullable=False),
    *job_columns(),
    Column("body", LargeBinary, nullable=False),
    Column("progress", LargeBinary),
    Column("curve", LargeBinary),
    Column("artifact_sha256", Text),
    Column("records_sha256", Text),
    CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
        name="status",
    ),
    Index(None, "account_id", "created_at"),
)

#: What happened to fine-tunes; ``seq`` counts from 1 without gaps.
fine_tune_events = Table(
    "fine_tune_events",
    metadata,
    Column("job_id", Text, ForeignKey("fine_tunes.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("type", Text, nullable=False),
    Column("message", Text, nullable=False),
)

#: The hours of keep warm that are held, one for each model kept warm.
keep_warm_windows = Table(
    "keep_warm_windows",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("adapter", Text, primary_key=True),
    Column("id", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("reserved_nano", BigInteger, nullable=False),
)

TABLES = (account_lines, families, tuned_models, fine_tunes, fine_tune_events, keep_warm_windows)
