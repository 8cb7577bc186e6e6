"""The log of decisions: an account's stored answers by their time, and what each took."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the index; no row is written again."""
    op.add_column("decisions", sa.Column("total_ms", sa.Double()))
    op.create_index(
        op.f("ix_decisions_account_id_created_at"), "decisions", ["account_id", "created_at"]
    )


def downgrade() -> None:
    """Refuse: going back would lose what was acknowledged.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError("The state is never migrated backwards; restore a copy instead.")
