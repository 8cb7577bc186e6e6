"""Evaluations, and the files of their predictions."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from steelyard.jobs.tables import job_columns
from steelyard.storage.tables import metadata

#: One model on the evaluation rows of one version. ``metrics`` and ``error`` are JSON, the hashes
#: name files of the store of predictions.
evaluations = Table(
    "evaluations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("dataset_id", Text, nullable=False),
    Column("dataset_version", Integer, nullable=False),
    Column("dataset_sha256", Text, nullable=False),
    Column("evaluation_sha256", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("model_id", Text, nullable=False),
    Column("model_sha256", Text, nullable=False),
    Column("model_label", Text, nullable=False),
    Column("model_name", Text),
    Column("version", Integer),
    Column("named", Text),
    Column("training_job_id", Text),
    *job_columns(),
    Column("evaluation_rows", Integer, nullable=False),
    Column("completed_rows", Integer, nullable=False, default=0),
    Column("decisions", Integer, nullable=False),
    Column("metrics", LargeBinary),
    Column("error", LargeBinary),
    Column("predictions_sha256", Text),
    Column("detail_sha256", Text),
    CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
        name="status",
    ),
    CheckConstraint("completed_rows >= 0 AND completed_rows <= evaluation_rows", name="progress"),
    Index(None, "account_id", "dataset_id", "created_at"),
)

#: Files of predictions of an evaluation that has not succeeded; ``rows`` were scored in each, of a
#: partition where the evaluation has some.
evaluation_parts = Table(
    "evaluation_parts",
    metadata,
    Column(
        "evaluation_id", Text, ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("number", Integer, primary_key=True),
    Column("rows", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("partition", Integer),
)

#: The rows of a large evaluation in ranges, which any number of workers score beside each other;
#: one that fits a partition has none. ``runner`` is the opening of the state that scores it, and
#: ``sha256`` names its predictions once all of its rows are scored.
evaluation_partitions = Table(
    "evaluation_partitions",
    metadata,
    Column(
        "evaluation_id", Text, ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("number", Integer, primary_key=True),
    Column("first", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("runner", Text),
    Column("sha256", Text),
)
