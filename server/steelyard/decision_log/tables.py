"""Tables of answers stored for feedback, and of outcomes."""

import sqlalchemy as sa

from steelyard.jobs.tables import job_columns, status_check
from steelyard.storage.tables import metadata

#: Answers kept for feedback; ``request``, ``results``, ``outcome_names`` and ``metadata`` are JSON,
#: ``total_ms`` is how long the answer took and ``key_id`` the key that called, where they are known;
#: ``named`` is the version of a named decision, such as ``support_triage@7``, and ``named_alias`` the
#: alias that pointed to it.
decisions = sa.Table(
    "decisions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("created_at", sa.Double, nullable=False, index=True),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("version", sa.Text),
    sa.Column("request", sa.LargeBinary, nullable=False),
    sa.Column("results", sa.LargeBinary, nullable=False),
    sa.Column("outcome_names", sa.LargeBinary, nullable=False),
    sa.Column("metadata", sa.LargeBinary),
    sa.Column("total_ms", sa.Double),
    sa.Column("key_id", sa.Text),
    sa.Column("named", sa.Text),
    sa.Column("named_alias", sa.Text),
    sa.Index(None, "account_id", "created_at"),
)

#: The outcome observed for one decision of an answer; ``outcome`` is JSON, ``origin`` is where it came
#: from and ``who`` reported it, both null where the report did not say.
feedback = sa.Table(
    "feedback",
    metadata,
    sa.Column(
        "decision_id", sa.Text, sa.ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("outcome", sa.LargeBinary, nullable=False),
    sa.Column("recorded_at", sa.Double, nullable=False, index=True),
    sa.Column("origin", sa.Text),
    sa.Column("who", sa.Text),
)

#: Files of an account's answers of one day (``day`` days after 1970 in UTC), in order of time and id:
#: ``last_at`` and ``last_id`` are those of the last one. ``is_cleared`` is 0 while rows of the file may
#: be in the state too.
decision_files = sa.Table(
    "decision_files",
    metadata,
    sa.Column("sha256", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("day", sa.Integer, nullable=False),
    sa.Column("first_at", sa.Double, nullable=False),
    sa.Column("last_at", sa.Double, nullable=False, index=True),
    sa.Column("last_id", sa.Text, nullable=False),
    sa.Column("least_id", sa.Text, nullable=False),
    sa.Column("greatest_id", sa.Text, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("bytes", sa.Integer, nullable=False),
    sa.Column("is_cleared", sa.Integer, nullable=False),
    sa.Index(None, "account_id", "last_at"),
)

#: The move of an account's day to files, once for ever; ``error`` is JSON.
decision_archivings = sa.Table(
    "decision_archivings",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("day", sa.Integer, nullable=False),
    *job_columns(),
    sa.Column("error", sa.LargeBinary),
    status_check(),
    sa.UniqueConstraint("account_id", "day"),
)
