"""Shares of a named decision's requests that grow by steps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("named_shares", sa.Column("ramp", sa.LargeBinary))
