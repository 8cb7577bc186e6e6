"""A made-up next version, whose migration does all that one may do while hosts of both share a state."""

from __future__ import annotations

import shutil
from pathlib import Path

from steelyard.storage.migrate import HEAD, MIGRATIONS
from support.tree.repository import PACKAGE

#: The revision of the next version.
NEXT = "9999"
_MIGRATION = f"""
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{NEXT}", "{HEAD}", None, None


def upgrade():
    op.add_column("ledger_entries", sa.Column("next", sa.Text))
    op.add_column("accounts", sa.Column("next", sa.Integer, server_default="7", nullable=False))
    op.create_table("next", sa.Column("id", sa.Text, primary_key=True))
"""


def next_migrations(folder: Path) -> Path:
    """Write the migrations of the next version to a folder of that name in ``folder``; return it."""
    ignored = shutil.ignore_patterns("__pycache__")
    copied = Path(shutil.copytree(MIGRATIONS, folder / "migrations", ignore=ignored))
    (copied / "versions" / f"r{NEXT}_next.py").write_text(_MIGRATION)
    return copied


def next_version(folder: Path) -> Path:
    """Write the server's package as the next version has it to a folder; return its PYTHONPATH."""
    package = folder / "steelyard"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "assets"))
    (package / "assets").symlink_to(PACKAGE / "assets")
    shutil.rmtree(package / "storage" / "migrations")
    next_migrations(package / "storage")
    module = package / "storage" / "migrate.py"
    text = module.read_text()
    assert "\nHEAD = " in text
    module.write_text(f'{text}\nHEAD = "{NEXT}"\n')
    return folder
