"""Bulk runs and their partitions."""

from sqlalchemy import Column, Double, ForeignKey, Integer, LargeBinary, Table, Text

from steelyard.storage.tables import metadata

#: A file that is answered: ``asked`` is the request without a context, as JSON. The model is the one
#: that the first partition was answered by, and ``error`` says, as JSON, why none is answered any more.
bulk_runs = Table(
    "bulk_runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("asked", LargeBinary, nullable=False),
    Column("model_id", Text),
    Column("model_sha256", Text),
    Column("error", LargeBinary),
)

#: Rows that wait for an answer, are answered by ``runner``, or wait to be fetched once there is an
#: ``output_sha256``. Whoever fetches a partition removes it.
bulk_partitions = Table(
    "bulk_partitions",
    metadata,
    Column("run_id", Text, ForeignKey("bulk_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("runner", Text),
    Column("input_sha256", Text, nullable=False),
    Column("output_sha256", Text),
)
