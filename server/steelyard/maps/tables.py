"""Maps of datasets."""

from __future__ import annotations

from sqlalchemy import (
    Column,
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

#: The map of a version by a model's vectors: one for ever. ``progress`` is how far it is and
#: ``error`` why it failed, both JSON; ``result_sha256`` names the file of its points.
dataset_maps = Table(
    "dataset_maps",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("dataset_id", Text, nullable=False),
    Column("dataset_version", Integer, nullable=False),
    *job_columns(),
    Column("model", Text, nullable=False),
    Column("model_sha256", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("points", Integer, nullable=False),
    Column("progress", LargeBinary),
    Column("error", LargeBinary),
    Column("result_sha256", Text),
    status_check(),
    UniqueConstraint("dataset_id", "dataset_version", "model_sha256"),
    Index(None, "account_id", "created_at"),
)
