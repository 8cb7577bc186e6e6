"""Tables of alarm rules, of watched models' sums, and of alarms."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from steelyard.storage.tables import metadata

#: What an account wants watched of a model; that of no name holds for every model without its own.
#: ``body`` is JSON.
alarm_rules = sa.Table(
    "alarm_rules",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
)

#: How far was looked; ``at`` is negative before the first look.
alarm_looks = sa.Table(
    "alarm_looks",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("last_id", sa.Text, nullable=False),
)


@sa.event.listens_for(alarm_looks, "after_create")
def _add_looks(table: sa.Table, connection: sa.Connection, **_: Any) -> None:
    names = ("decisions", "feedback", "operations")
    looks = [{"name": name, "at": -1.0, "last_id": ""} for name in names]
    connection.execute(table.insert(), looks)


#: What is kept of a model, or of a number of a family, between two looks; ``body`` is JSON.
alarm_watches = sa.Table(
    "alarm_watches",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, primary_key=True),
    sa.Column("counted", sa.Integer, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Index(None, "updated_at"),
)

#: Counted feedback: later feedback on the same decision does not count.
alarm_feedback = sa.Table(
    "alarm_feedback",
    metadata,
    sa.Column(
        "decision_id", sa.Text, sa.ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("name", sa.Text, primary_key=True),
)

#: How golden rows were answered, one check a row; ``body`` is JSON.
golden_checks = sa.Table(
    "golden_checks",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

#: Alarms since they were raised; ``evidence`` is JSON.
alarms = sa.Table(
    "alarms",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("decision", sa.Text, nullable=False),
    sa.Column("watch", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("evidence", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("acknowledged_at", sa.Double),
    sa.Column("acknowledged_by", sa.Text),
    sa.Column("cleared_at", sa.Double),
    sa.Column("cleared_reason", sa.Text),
    sa.CheckConstraint("state IN ('raised', 'acknowledged', 'cleared')", name="state"),
    sa.Index(None, "account_id", "created_at"),
    sa.Index(None, "state", "account_id"),
)
