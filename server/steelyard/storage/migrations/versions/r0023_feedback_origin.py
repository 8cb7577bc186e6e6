"""Where feedback came from: its origin and who reported it, null for all that is stored before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("feedback", sa.Column("origin", sa.Text))
    op.add_column("feedback", sa.Column("who", sa.Text))
