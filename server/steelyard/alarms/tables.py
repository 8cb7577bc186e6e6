"""Tables of alarm rules, of watched models' sums, and of alarms."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    event,
)

from steelyard.storage.tables import metadata

#: What an account wants watched of a model; that of no name holds for every model without its own.
#: ``body`` is JSON.
alarm_rules = Table(
    "alarm_rules",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("updated_at", Double, nullable=False),
)

#: How far was looked; ``at`` is negative before the first look.
alarm_looks = Table(
    "alarm_looks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("last_id", Text, nullable=False),
)


@event.listens_for(alarm_looks, "after_create")
def _add_looks(table: Table, connection: Connection, **_: Any) -> None:
    names = ("decisions", "feedback", "operations")
    looks = [{"name": name, "at": -1.0, "last_id": ""} for name in names]
    connection.execute(table.insert(), looks)


#: What is kept of a model, or of a number of a family, between two looks; ``body`` is JSON.
alarm_watches = Table(
    "alarm_watches",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("counted", Integer, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "updated_at"),
)

#: Feedback that was counted: what is told of the same decision again is not.
alarm_feedback = Table(
    "alarm_feedback",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
)

#: Alarms since they were raised; ``evidence`` is JSON.
alarms = Table(
    "alarms",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("model", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("watch", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("evidence", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("acknowledged_at", Double),
    Column("acknowledged_by", Text),
    Column("cleared_at", Double),
    Column("cleared_reason", Text),
    CheckConstraint("state IN ('raised', 'acknowledged', 'cleared')", name="state"),
    Index(None, "account_id", "created_at"),
    Index(None, "state", "account_id"),
)
