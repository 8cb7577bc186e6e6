"""Tables of families, their models, fine-tunes and keep warm."""

import sqlalchemy as sa

from steelyard.jobs.tables import job_columns
from steelyard.storage.tables import metadata

#: Where an account's lineage is in its history: ``revision`` counts its changes, and
#: ``n_windows`` the hours of keep warm that were ever held.
account_lines = sa.Table(
    "account_lines",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("n_windows", sa.Integer, nullable=False),
)

#: Families by name; ``body`` is JSON: all that is kept of one.
families = sa.Table(
    "families",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("dataset_id", sa.Text, nullable=False, index=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("deleted_at", sa.Double),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

#: Models of families, also those that are gone; ``adapter`` is their identity and ``body``
#: is JSON. A number is given once.
tuned_models = sa.Table(
    "tuned_models",
    metadata,
    sa.Column("adapter", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("family", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.CheckConstraint("status IN ('ready', 'deleted', 'discarded')", name="status"),
    sa.UniqueConstraint("account_id", "family", "version"),
)

#: Fine-tunes. ``body``, ``progress`` and ``curve`` are JSON, the hashes name what it made in the
#: stores of artifacts and of records.
fine_tunes = sa.Table(
    "fine_tunes",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("family", sa.Text, nullable=False),
    sa.Column("dataset_id", sa.Text, nullable=False, index=True),
    sa.Column("dataset_version", sa.Integer, nullable=False),
    *job_columns(),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("progress", sa.LargeBinary),
    sa.Column("curve", sa.LargeBinary),
    sa.Column("artifact_sha256", sa.Text),
    sa.Column("records_sha256", sa.Text),
    sa.CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
        name="status",
    ),
    sa.Index(None, "account_id", "created_at"),
)

#: What happened to fine-tunes; ``seq`` counts from 1 without gaps.
fine_tune_events = sa.Table(
    "fine_tune_events",
    metadata,
    sa.Column("job_id", sa.Text, sa.ForeignKey("fine_tunes.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
)

#: The hours of keep warm that are held, one for each model kept warm.
keep_warm_windows = sa.Table(
    "keep_warm_windows",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("adapter", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("ends_at", sa.Double, nullable=False),
    sa.Column("reserved_nano", sa.BigInteger, nullable=False),
)
