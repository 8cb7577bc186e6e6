"""The first release: the base of later revisions. A new state is made from the metadata."""

from __future__ import annotations

revision = "0024"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: a state without tables is never migrated."""
