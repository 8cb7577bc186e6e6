"""Tables of sources of labeling, jobs, and the files of teachers' answers."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from steelyard.jobs.tables import job_columns
from steelyard.storage.tables import metadata

#: Uploaded queries; ``receipt`` is JSON and ``sha256`` names their file. ``tokens`` are those of
#: contexts and of the rows' own decisions, ``open_rows`` the rows without any. A deleted one keeps
#: its id alone.
labeling_sources = Table(
    "labeling_sources",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("open_rows", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("receipt", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("deleted_at", Double),
    Index(None, "account_id", "created_at"),
)

#: Teachers on a source. ``teachers``, ``decisions``, ``summary``, ``selection`` and ``error`` are
#: JSON; ``answers_sha256`` names the file of what they said once labels are ready.
labeling_jobs = Table(
    "labeling_jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("source_id", Text, ForeignKey("labeling_sources.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    *job_columns(),
    Column("teachers", LargeBinary, nullable=False),
    Column("decisions", LargeBinary),
    Column("weighting", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("completed_rows", Integer, nullable=False),
    Column("valid_rows", Integer, nullable=False),
    Column("agreement_rows", Integer, nullable=False),
    Column("error_rows", Integer, nullable=False),
    Column("price_nano", BigInteger, nullable=False),
    Column("charge", Text, nullable=False),
    Column("summary", LargeBinary),
    Column("answers_sha256", Text),
    Column("dataset_id", Text),
    Column("selection", LargeBinary),
    Column("error", LargeBinary),
    CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'cancelled', 'review_ready', 'failed', "
        "'finalized', 'discarded', 'deleted')",
        name="status",
    ),
    CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
    CheckConstraint("completed_rows >= 0 AND completed_rows <= rows", name="progress"),
    Index(None, "account_id", "created_at"),
)

#: Files of what teachers said in a job whose labels are not ready.
labeling_parts = Table(
    "labeling_parts",
    metadata,
    Column("job_id", Text, ForeignKey("labeling_jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("sha256", Text, nullable=False),
)
