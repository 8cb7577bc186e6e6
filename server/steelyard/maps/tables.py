"""Maps of datasets."""

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
    UniqueConstraint,
)

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
    Column("status", Text, nullable=False, index=True),
    Column("generation", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("runner", Text),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("model", Text, nullable=False),
    Column("model_sha256", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("points", Integer, nullable=False),
    Column("progress", LargeBinary),
    Column("error", LargeBinary),
    Column("result_sha256", Text),
    CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'cancelled', 'succeeded', 'failed')",
        name="status",
    ),
    UniqueConstraint("dataset_id", "dataset_version", "model_sha256"),
    Index(None, "account_id", "created_at"),
)
