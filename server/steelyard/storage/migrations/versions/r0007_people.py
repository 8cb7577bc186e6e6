"""People: users, memberships, challenges, sessions, letters and what was done in the console."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "users",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("email", sa.Text, nullable=False, unique=True),
        sa.Column("is_operator", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "memberships",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("email", sa.Text, nullable=False, index=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("invited_by", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("joined_at", sa.Double),
        sa.CheckConstraint("role IN ('owner', 'developer', 'billing', 'reviewer')", name="role"),
        sa.UniqueConstraint("account_id", "email"),
    )
    op.create_table(
        "sign_in_challenges",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("network", sa.Text, nullable=False),
        sa.Column("code_hash", sa.Text),
        sa.Column("tries_left", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Index(None, "email", "created_at"),
        sa.Index(None, "network", "created_at"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("user_id", sa.Text, sa.ForeignKey("users.id"), nullable=False, index=True),
        sa.Column("sha256", sa.Text, nullable=False, unique=True),
        sa.Column("previous_sha256", sa.Text, index=True),
        sa.Column("rotated_at", sa.Double),
        sa.Column("must_rotate", sa.Integer, nullable=False),
        sa.Column("network", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("confirmed_at", sa.Double, nullable=False),
        sa.Column("last_used_at", sa.Double, nullable=False),
        sa.Column("idle_until", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
    )
    op.create_table(
        "letters",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("challenge_id", sa.Text),
        sa.Column("account_name", sa.Text),
        sa.Column("sender", sa.Text),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("next_at", sa.Double, nullable=False, index=True),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("subject", sa.Text),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Index(None, "account_id", "created_at"),
        sa.Index(None, "created_at"),
    )
