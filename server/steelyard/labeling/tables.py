"""Tables of sources of labeling, jobs, and the files of teachers' answers."""

import sqlalchemy as sa

from steelyard.jobs.tables import job_columns
from steelyard.storage.tables import metadata

#: Uploaded queries; ``receipt`` is JSON and ``sha256`` names their file. ``tokens`` are those of
#: contexts and of the rows' own decisions, ``open_rows`` the rows without any. A deleted one keeps
#: its id alone.
labeling_sources = sa.Table(
    "labeling_sources",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("open_rows", sa.Integer, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("receipt", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("deleted_at", sa.Double),
    sa.Index(None, "account_id", "created_at"),
)

#: Teachers on a source. ``teachers``, ``decisions``, ``summary``, ``selection`` and ``error`` are
#: JSON; ``answers_sha256`` names the file of their answers once labels are ready.
labeling_jobs = sa.Table(
    "labeling_jobs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column(
        "source_id", sa.Text, sa.ForeignKey("labeling_sources.id"), nullable=False, index=True
    ),
    sa.Column("name", sa.Text, nullable=False),
    *job_columns(),
    sa.Column("teachers", sa.LargeBinary, nullable=False),
    sa.Column("decisions", sa.LargeBinary),
    sa.Column("weighting", sa.Text, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("completed_rows", sa.Integer, nullable=False),
    sa.Column("valid_rows", sa.Integer, nullable=False),
    sa.Column("agreement_rows", sa.Integer, nullable=False),
    sa.Column("error_rows", sa.Integer, nullable=False),
    sa.Column("price_nano", sa.BigInteger, nullable=False),
    sa.Column("charge", sa.Text, nullable=False),
    sa.Column("summary", sa.LargeBinary),
    sa.Column("answers_sha256", sa.Text),
    sa.Column("dataset_id", sa.Text),
    sa.Column("selection", sa.LargeBinary),
    sa.Column("error", sa.LargeBinary),
    sa.CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'cancelled', 'review_ready', 'failed', "
        "'finalized', 'discarded', 'deleted')",
        name="status",
    ),
    sa.CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
    sa.CheckConstraint("completed_rows >= 0 AND completed_rows <= rows", name="progress"),
    sa.Index(None, "account_id", "created_at"),
)

#: Files of teachers' answers in a job whose labels are not ready.
labeling_parts = sa.Table(
    "labeling_parts",
    metadata,
    sa.Column(
        "job_id", sa.Text, sa.ForeignKey("labeling_jobs.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("sha256", sa.Text, nullable=False),
)
