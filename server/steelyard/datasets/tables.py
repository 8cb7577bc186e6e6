"""Datasets and their versions."""

import sqlalchemy as sa

from steelyard.storage.tables import metadata

#: Datasets; ``version`` is the latest, ``listed_at`` is ``used_at``, else ``created_at``, and
#: ``receipt`` is JSON: the origin of the first version, and ``labeling`` the job that made it. A
#: deleted one keeps its id alone.
datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("used_at", sa.Double),
    sa.Column("listed_at", sa.Double, nullable=False),
    sa.Column("archived_at", sa.Double),
    sa.Column("deleted_at", sa.Double),
    sa.Column("receipt", sa.LargeBinary),
    sa.Column("labeling", sa.LargeBinary),
    sa.Index(None, "account_id", "listed_at"),
)

#: Versions of datasets, which never change; ``manifest`` is JSON and names their files.
dataset_versions = sa.Table(
    "dataset_versions",
    metadata,
    sa.Column("dataset_id", sa.Text, sa.ForeignKey("datasets.id"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("added_via", sa.Text, nullable=False),
    sa.Column("added_from", sa.Text),
    sa.Column("manifest", sa.LargeBinary, nullable=False),
    sa.CheckConstraint("added_via IN ('api', 'jsonl', 'csv', 'labeling')", name="added_via"),
)
