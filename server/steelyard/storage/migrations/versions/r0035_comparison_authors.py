"""Authors of comparisons of versions of named decisions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which is null of earlier comparisons."""
    op.add_column("named_comparisons", sa.Column("made_by", sa.Text))
