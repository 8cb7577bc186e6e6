"""Paid work, and idempotency keys."""

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

from steelyard.storage.tables import metadata

#: Paid work: ``pending``, then ``succeeded``, ``failed`` (its key repeats the failure) or
#: ``released`` (its key is free again). ``credit`` adds to an account. ``instance`` names the
#: process that runs it; without one, a job or an hour of keep warm says when it ends. What was asked
#: is counted where it was answered;
#: ``named`` is the version of a named decision, such as ``support_triage@7``.
operations = Table(
    "operations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("key_id", Text, ForeignKey("api_keys.id")),
    Column("route", Text, nullable=False),
    Column("idempotency_key", Text),
    Column("model", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("instance", Text),
    Column("lease_until", Double),
    Column("accepted_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("reserved_nano", BigInteger, nullable=False),
    Column("amount_nano", BigInteger, nullable=False),
    Column("input_tokens", BigInteger),
    Column("n_decisions", Integer),
    Column("named", Text),
    CheckConstraint(
        "state IN ('pending', 'succeeded', 'failed', 'released', 'credit')", name="state"
    ),
    Index(None, "state", "accepted_at"),
)

#: One row for each idempotency key in use on an account and a route. ``state`` is ``pending``,
#: ``succeeded`` or ``failed``; ``body`` is the answer, or the error of a failure, until it is
#: dropped.
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("route", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("payload_sha256", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("operation_id", Text),
    Column("body", LargeBinary),
    Column("replay_until", Double),
    Column("forget_at", Double, nullable=False),
    CheckConstraint("state IN ('pending', 'succeeded', 'failed')", name="state"),
    Index(None, "replay_until"),
    Index(None, "forget_at"),
)
