"""Alarms: rules, what is kept of watched models, alarms, and letters that tell of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables, a letter's text, and an index of feedback by time."""
    op.create_table(
        "alarm_rules",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
    )
    looks = op.create_table(
        "alarm_looks",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("last_id", sa.Text, nullable=False),
    )
    names = ("decisions", "feedback", "operations")
    op.bulk_insert(looks, [{"name": name, "at": -1.0, "last_id": ""} for name in names])
    op.create_table(
        "alarm_watches",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("counted", sa.Integer, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Index(None, "updated_at"),
    )
    op.create_table(
        "alarm_feedback",
        sa.Column(
            "decision_id",
            sa.Text,
            sa.ForeignKey("decisions.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("name", sa.Text, primary_key=True),
    )
    op.create_table(
        "alarms",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("watch", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("evidence", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("acknowledged_at", sa.Double),
        sa.Column("acknowledged_by", sa.Text),
        sa.Column("cleared_at", sa.Double),
        sa.Column("cleared_reason", sa.Text),
        sa.CheckConstraint("state IN ('raised', 'acknowledged', 'cleared')", name="state"),
        sa.Index(None, "account_id", "created_at"),
        sa.Index(None, "state", "account_id"),
    )
    op.add_column("letters", sa.Column("text", sa.Text))
    op.create_index(op.f("ix_feedback_recorded_at"), "feedback", ["recorded_at"])
