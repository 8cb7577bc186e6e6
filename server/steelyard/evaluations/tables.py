"""Evaluations, and the files of their predictions."""

from __future__ import annotations

import sqlalchemy as sa

from steelyard.jobs.tables import job_columns
from steelyard.storage.tables import metadata


def _of_evaluation() -> sa.Column[str]:
    refers = sa.ForeignKey("evaluations.id", ondelete="CASCADE")
    return sa.Column("evaluation_id", sa.Text, refers, primary_key=True)


#: One model on the evaluation rows of one version. ``metrics`` and ``error`` are JSON, the hashes
#: name files of the store of predictions.
evaluations = sa.Table(
    "evaluations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("dataset_id", sa.Text, nullable=False),
    sa.Column("dataset_version", sa.Integer, nullable=False),
    sa.Column("dataset_sha256", sa.Text, nullable=False),
    sa.Column("evaluation_sha256", sa.Text, nullable=False),
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("model_id", sa.Text, nullable=False),
    sa.Column("model_sha256", sa.Text, nullable=False),
    sa.Column("model_label", sa.Text, nullable=False),
    sa.Column("model_name", sa.Text),
    sa.Column("version", sa.Integer),
    sa.Column("named", sa.Text),
    sa.Column("training_job_id", sa.Text),
    *job_columns(),
    sa.Column("evaluation_rows", sa.Integer, nullable=False),
    sa.Column("completed_rows", sa.Integer, nullable=False, default=0),
    sa.Column("decisions", sa.Integer, nullable=False),
    sa.Column("metrics", sa.LargeBinary),
    sa.Column("error", sa.LargeBinary),
    sa.Column("predictions_sha256", sa.Text),
    sa.Column("detail_sha256", sa.Text),
    sa.CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
        name="status",
    ),
    sa.CheckConstraint(
        "completed_rows >= 0 AND completed_rows <= evaluation_rows", name="progress"
    ),
    sa.Index(None, "account_id", "dataset_id", "created_at"),
)

#: Files of predictions of an evaluation that has not succeeded; ``rows`` were scored in each, of a
#: partition where the evaluation has some.
evaluation_parts = sa.Table(
    "evaluation_parts",
    metadata,
    _of_evaluation(),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("partition", sa.Integer),
)

#: The rows of a large evaluation in ranges, which any number of workers score beside each other;
#: one that fits a partition has none. ``runner`` is the opening of the state that scores it, and
#: ``sha256`` names its predictions once all of its rows are scored.
evaluation_partitions = sa.Table(
    "evaluation_partitions",
    metadata,
    _of_evaluation(),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("first", sa.Integer, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("runner", sa.Text),
    sa.Column("sha256", sa.Text),
)
