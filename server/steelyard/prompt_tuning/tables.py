"""Jobs of prompt tuning."""

import sqlalchemy as sa

from steelyard.jobs.tables import job_columns, status_check
from steelyard.storage.tables import metadata

#: The tuning of a decision's wording. ``asked`` is the decision as the rows word it, ``search`` how
#: far the search is, ``result`` what it proved: JSON, as is ``error``. ``model_id`` is the base
#: model's name or the adapter, ``model`` how it is shown.
prompt_tunings = sa.Table(
    "prompt_tunings",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("dataset_id", sa.Text, nullable=False, index=True),
    sa.Column("dataset_version", sa.Integer, nullable=False),
    *job_columns(),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("model_id", sa.Text, nullable=False),
    sa.Column("model_sha256", sa.Text, nullable=False),
    sa.Column("decision", sa.Text, nullable=False),
    sa.Column("asked", sa.LargeBinary, nullable=False),
    sa.Column("effort", sa.Text, nullable=False),
    sa.Column("price_nano", sa.BigInteger, nullable=False),
    sa.Column("charge", sa.Text, nullable=False),
    sa.Column("search", sa.LargeBinary),
    sa.Column("result", sa.LargeBinary),
    sa.Column("error", sa.LargeBinary),
    sa.Column("dismissed_at", sa.Double),
    status_check(),
    sa.CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
    sa.CheckConstraint("effort IN ('standard', 'thorough')", name="effort"),
    sa.Index(None, "account_id", "created_at"),
)
