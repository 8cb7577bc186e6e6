"""The key that a stored decision was asked for with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is empty for what was stored before."""
    op.add_column("decisions", sa.Column("key_id", sa.Text))
