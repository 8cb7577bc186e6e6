"""Named decisions: their versions, aliases and moves, and what was answered by them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables, and columns that are empty for what was stored before."""
    op.create_table(
        "named_decisions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("owner", sa.Text),
        sa.Column("dataset_id", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("archived_at", sa.Double),
        sa.UniqueConstraint("account_id", "name"),
        sa.Index(None, "account_id", "created_at"),
    )
    op.create_table(
        "named_versions",
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
    op.create_table(
        "named_aliases",
        _of_decision(primary_key=True),
        sa.Column("alias", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("moved_at", sa.Double, nullable=False),
    )
    op.create_table(
        "named_moves",
        sa.Column("id", sa.Text, primary_key=True),
        _of_decision(),
        sa.Column("alias", sa.Text, nullable=False),
        sa.Column("from_number", sa.Integer),
        sa.Column("to_number", sa.Integer, nullable=False),
        sa.Column("moved_by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Index(None, "named_id", "created_at"),
    )
    op.add_column("decisions", sa.Column("named", sa.Text))
    op.add_column("decisions", sa.Column("named_alias", sa.Text))
    op.add_column("operations", sa.Column("named", sa.Text))


def _of_decision(*, primary_key: bool = False) -> sa.Column[str]:
    refers = sa.ForeignKey("named_decisions.id", ondelete="CASCADE")
    return sa.Column("named_id", sa.Text, refers, nullable=False, primary_key=primary_key)
