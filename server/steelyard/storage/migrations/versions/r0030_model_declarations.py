"""Connected models and routes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "model_declarations",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("section", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, unique=True),
        sa.Column("body", sa.LargeBinary),
        sa.Column("declared", sa.LargeBinary),
        sa.Column("declared_by", sa.Text),
        sa.CheckConstraint("section IN ('models', 'routes')", name="section"),
    )
