"""Maps of datasets."""

import sqlalchemy as sa

from steelyard.jobs.tables import job_columns, status_check
from steelyard.storage.tables import metadata

#: The map of a version by a model's vectors: one for ever. ``progress`` is how far it is and
#: ``error`` why it failed, both JSON; ``result_sha256`` names the file of its points.
dataset_maps = sa.Table(
    "dataset_maps",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("dataset_id", sa.Text, nullable=False),
    sa.Column("dataset_version", sa.Integer, nullable=False),
    *job_columns(),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("model_sha256", sa.Text, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("points", sa.Integer, nullable=False),
    sa.Column("progress", sa.LargeBinary),
    sa.Column("error", sa.LargeBinary),
    sa.Column("result_sha256", sa.Text),
    status_check(),
    sa.UniqueConstraint("dataset_id", "dataset_version", "model_sha256"),
    sa.Index(None, "account_id", "created_at"),
)
