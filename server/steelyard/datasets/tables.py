"""Datasets and their versions."""

from __future__ import annotations

from sqlalchemy import (
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

from steelyard.storage.tables import metadata

#: Datasets; ``version`` is the latest, ``listed_at`` is ``used_at``, else ``created_at``, and
#: ``receipt`` is JSON: what the first version came in, and ``labeling`` the job that made it. A
#: deleted one keeps its id alone.
datasets = Table(
    "datasets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("used_at", Double),
    Column("listed_at", Double, nullable=False),
    Column("archived_at", Double),
    Column("deleted_at", Double),
    Column("receipt", LargeBinary),
    Column("labeling", LargeBinary),
    Index(None, "account_id", "listed_at"),
)

#: Versions of datasets, which never change; ``manifest`` is JSON and names their files.
dataset_versions = Table(
    "dataset_versions",
    metadata,
    Column("dataset_id", Text, ForeignKey("datasets.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("added_via", Text, nullable=False),
    Column("added_from", Text),
    Column("manifest", LargeBinary, nullable=False),
    CheckConstraint("added_via IN ('api', 'jsonl', 'csv', 'labeling')", name="added_via"),
)
