"""Tables of judges' qualifications, and of the jobs that set up judges and routes."""

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from steelyard.jobs.tables import job_columns, status_check
from steelyard.storage.tables import metadata

#: Qualifications of judges, never changed; ``body`` is JSON. ``account_id``: whose dataset was asked.
judge_qualifications = Table(
    "judge_qualifications",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("judge", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("judge", "number"),
)

#: Downloads, checks, calibrations, qualifications and fits: ``kind`` says which, ``name`` of which model or
#: route. ``done`` of ``total`` bytes or rows; request, result and error are JSON.
model_setups = Table(
    "model_setups",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False, index=True),
    Column("dataset_id", Text),
    Column("dataset_version", Integer),
    *job_columns(),
    Column("request", LargeBinary),
    Column("done", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("result", LargeBinary),
    Column("error", LargeBinary),
    status_check(),
    Index(None, "account_id", "created_at"),
)
