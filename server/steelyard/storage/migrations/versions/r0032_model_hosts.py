"""Files of connected models, and which hosts have which models."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the table."""
    op.add_column("model_declarations", sa.Column("files", sa.LargeBinary))
    op.create_table(
        "model_hosts",
        sa.Column("instance", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("models", sa.LargeBinary, nullable=False),
    )
