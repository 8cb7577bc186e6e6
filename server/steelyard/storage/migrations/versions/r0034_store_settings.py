"""The most that is stored of the answers of an account, of a key and of a named decision."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    for table in ("accounts", "api_keys", "named_decisions"):
        op.add_column(table, sa.Column("store", sa.Text, nullable=False, server_default="on"))
