"""Paid work, and idempotency keys."""

import sqlalchemy as sa

from steelyard.storage.tables import metadata

#: Paid work: ``pending``, then ``succeeded``, ``failed`` (its key repeats the failure) or
#: ``released`` (its key is free again). ``credit`` adds to an account. ``instance`` names the
#: process that runs it; without one, a job or an hour of keep warm says when it ends. What was asked
#: is counted where it was answered;
#: ``named`` is the version of a named decision, such as ``support_triage@7``.
operations = sa.Table(
    "operations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("key_id", sa.Text, sa.ForeignKey("api_keys.id")),
    sa.Column("route", sa.Text, nullable=False),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("instance", sa.Text),
    sa.Column("lease_until", sa.Double),
    sa.Column("accepted_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("reserved_nano", sa.BigInteger, nullable=False),
    sa.Column("amount_nano", sa.BigInteger, nullable=False),
    sa.Column("input_tokens", sa.BigInteger),
    sa.Column("n_decisions", sa.Integer),
    sa.Column("named", sa.Text),
    sa.CheckConstraint(
        "state IN ('pending', 'succeeded', 'failed', 'released', 'credit')", name="state"
    ),
    sa.Index(None, "state", "accepted_at"),
)

#: One row for each idempotency key in use on an account and a route. ``state`` is ``pending``,
#: ``succeeded`` or ``failed``; ``body`` is the answer, or the error of a failure, until it is
#: dropped.
idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("route", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("payload_sha256", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("operation_id", sa.Text),
    sa.Column("body", sa.LargeBinary),
    sa.Column("replay_until", sa.Double),
    sa.Column("forget_at", sa.Double, nullable=False),
    sa.CheckConstraint("state IN ('pending', 'succeeded', 'failed')", name="state"),
    sa.Index(None, "replay_until"),
    sa.Index(None, "forget_at"),
)
