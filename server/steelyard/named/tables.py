"""Named decisions, their versions, and the aliases that point to these."""

from __future__ import annotations

import sqlalchemy as sa

from steelyard.jobs.tables import job_columns, status_check
from steelyard.storage.tables import metadata, store_setting


def _of_decision(*, primary_key: bool = False) -> sa.Column[str]:
    refers = sa.ForeignKey("named_decisions.id", ondelete="CASCADE")
    return sa.Column("named_id", sa.Text, refers, nullable=False, primary_key=primary_key)


named_decisions = sa.Table(
    "named_decisions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("owner", sa.Text),
    sa.Column("dataset_id", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("archived_at", sa.Double),
    store_setting(),
    sa.UniqueConstraint("account_id", "name"),
    sa.Index(None, "account_id", "created_at"),
)

#: Versions, which never change; ``content`` is JSON, and ``sha256`` its hash.
named_versions = sa.Table(
    "named_versions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _of_decision(),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("made_by", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.UniqueConstraint("named_id", "number"),
    sa.UniqueConstraint("named_id", "sha256"),
)

#: Which version each alias points to.
named_aliases = sa.Table(
    "named_aliases",
    metadata,
    _of_decision(primary_key=True),
    sa.Column("alias", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("moved_at", sa.Double, nullable=False),
)

#: Every move of an alias; the first has no version before it. ``verdict`` is that of the comparison
#: ``comparison_id``, and ``overruled`` says why it was moved in spite of it, or without one.
named_moves = sa.Table(
    "named_moves",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _of_decision(),
    sa.Column("alias", sa.Text, nullable=False),
    sa.Column("from_number", sa.Integer),
    sa.Column("to_number", sa.Integer, nullable=False),
    sa.Column("moved_by", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("comparison_id", sa.Text),
    sa.Column("verdict", sa.Text),
    sa.Column("overruled", sa.Text),
    sa.Index(None, "named_id", "created_at"),
)

#: Shares of an alias's requests that another alias answers; of each alias one at a time has no end.
#: ``figures`` is JSON: how often the two were right on feedback.
named_shares = sa.Table(
    "named_shares",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _of_decision(),
    sa.Column("alias", sa.Text, nullable=False),
    sa.Column("to_alias", sa.Text, nullable=False),
    sa.Column("from_number", sa.Integer, nullable=False),
    sa.Column("to_number", sa.Integer, nullable=False),
    sa.Column("share", sa.Double, nullable=False),
    sa.Column("started_by", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("ended_by", sa.Text),
    sa.Column("ended_reason", sa.Text),
    sa.Column("figures", sa.LargeBinary),
    sa.Column("ramp", sa.LargeBinary),
    sa.Index(None, "named_id", "created_at"),
)

#: Comparisons of two versions. ``progress`` has the answers so far, ``result`` the verdict: JSON, as
#: is ``error``. A model's id is the base model's name or the adapter.
named_comparisons = sa.Table(
    "named_comparisons",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    _of_decision(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("dataset_id", sa.Text, index=True),
    sa.Column("dataset_version", sa.Integer),
    *job_columns(),
    sa.Column("from_number", sa.Integer, nullable=False),
    sa.Column("to_number", sa.Integer, nullable=False),
    sa.Column("from_model_id", sa.Text, nullable=False),
    sa.Column("to_model_id", sa.Text, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("stored", sa.Integer, nullable=False),
    sa.Column("contexts", sa.Integer, nullable=False),
    sa.Column("completed_contexts", sa.Integer, nullable=False),
    sa.Column("price_nano", sa.BigInteger, nullable=False),
    sa.Column("charge", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text),
    sa.Column("progress", sa.LargeBinary),
    sa.Column("result", sa.LargeBinary),
    sa.Column("error", sa.LargeBinary),
    sa.Column("made_by", sa.Text),
    status_check(),
    sa.CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
    sa.Index(None, "account_id", "created_at"),
    sa.Index(None, "named_id", "created_at"),
)
