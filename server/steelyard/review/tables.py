"""Reviews of versions of datasets, and the logs of their edits."""

from __future__ import annotations

from sqlalchemy import (
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

#: Reviews of versions of datasets: ``revision`` counts the entries of a draft's log, ``rows`` are
#: those of the version, and ``sealed`` is JSON: what the draft became.
drafts = Table(
    "drafts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("dataset_id", Text, nullable=False, index=True),
    Column("dataset_version", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("sealed", LargeBinary),
    CheckConstraint("status IN ('open', 'sealed')", name="status"),
    Index(None, "account_id", "created_at"),
)

#: The logs of drafts; nothing of an entry changes but ``undone``: 0 while it holds, 1 once it was
#: undone, 2 when it cannot be redone any more. ``row`` is the one row that an entry is about; else
#: ``places`` has all of them, compressed. ``target`` is what an undo or a redo is about, and ``body``
#: is JSON.
draft_entries = Table(
    "draft_entries",
    metadata,
    Column("draft_id", Text, ForeignKey("drafts.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("reviewer", Text),
    Column("action", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("row", Integer),
    Column("places", LargeBinary),
    Column("target", Integer),
    Column("undone", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    CheckConstraint("undone IN (0, 1, 2)", name="undone"),
    Index(None, "draft_id", "row"),
)

#: The logs of who is to label which rows of drafts: rows that a reviewer gets (``assign``) or no
#: longer has (``drop``), and what one of two said of a row of both (``answer``, with ``body``, JSON).
#: ``places`` are rows, compressed.
draft_duties = Table(
    "draft_duties",
    metadata,
    Column("draft_id", Text, ForeignKey("drafts.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("places", LargeBinary, nullable=False),
    Column("body", LargeBinary),
    CheckConstraint("action IN ('assign', 'drop', 'answer')", name="action"),
)
