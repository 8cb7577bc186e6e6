"""Reviews of versions of datasets, and the logs of their edits."""

import sqlalchemy as sa

from steelyard.storage.tables import metadata

#: Reviews of versions of datasets: ``revision`` counts the entries of a draft's log, ``rows`` are
#: those of the version, and ``sealed`` is JSON: what the draft became.
drafts = sa.Table(
    "drafts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("dataset_id", sa.Text, nullable=False, index=True),
    sa.Column("dataset_version", sa.Integer, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("sealed", sa.LargeBinary),
    sa.CheckConstraint("status IN ('open', 'sealed')", name="status"),
    sa.Index(None, "account_id", "created_at"),
)

#: The logs of drafts; nothing of an entry changes but ``undone``: 0 while it holds, 1 once it was
#: undone, 2 when it cannot be redone any more. ``row`` is the one row that an entry is about; else
#: ``places`` has all of them, compressed. ``target`` is what an undo or a redo is about, and ``body``
#: is JSON.
draft_entries = sa.Table(
    "draft_entries",
    metadata,
    sa.Column(
        "draft_id", sa.Text, sa.ForeignKey("drafts.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("reviewer", sa.Text),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("row", sa.Integer),
    sa.Column("places", sa.LargeBinary),
    sa.Column("target", sa.Integer),
    sa.Column("undone", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.CheckConstraint("undone IN (0, 1, 2)", name="undone"),
    sa.Index(None, "draft_id", "row"),
)

#: The logs of who is to label which rows of drafts: rows that a reviewer gets (``assign``) or no
#: longer has (``drop``), and what one of two said of a row of both (``answer``, with ``body``, JSON).
#: ``places`` are rows, compressed; ``body`` of ``assign`` has the known ones among rows labelled apart.
draft_duties = sa.Table(
    "draft_duties",
    metadata,
    sa.Column(
        "draft_id", sa.Text, sa.ForeignKey("drafts.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("reviewer", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("places", sa.LargeBinary, nullable=False),
    sa.Column("body", sa.LargeBinary),
    sa.CheckConstraint("action IN ('assign', 'drop', 'answer')", name="action"),
)
