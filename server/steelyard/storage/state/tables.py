"""The tables of the state, as the newest migration leaves them.

Money is in integers of nano-USD, times are Unix seconds, hashes are lower-case hex SHA-256.
"""

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
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: Who owns resources and pays. The account ``local`` is there from the first migration on.
accounts = Table(
    "accounts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
)

#: Keys by their hash; ``prefix`` is the part of a key that is no secret.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False, unique=True),
    Column("sha256", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("monthly_cap_nano", BigInteger),
    Column("created_at", Double, nullable=False),
    Column("last_used_at", Double),
    Column("revoked_at", Double),
    CheckConstraint("scope IN ('full', 'inference', 'read')", name="scope"),
)

#: What a key's accepted work cost, and what it holds, by UTC month such as ``2026-11``.
key_months = Table(
    "key_months",
    metadata,
    Column("key_id", Text, ForeignKey("api_keys.id"), primary_key=True),
    Column("month", Text, primary_key=True),
    Column("spent_nano", BigInteger, nullable=False),
    Column("held_nano", BigInteger, nullable=False),
    CheckConstraint("spent_nano >= 0 AND held_nano >= 0", name="not_negative"),
)

#: Paid work: ``pending``, then ``succeeded``, ``failed`` (its key repeats the failure) or
#: ``released`` (its key is free again). ``credit`` adds to an account. ``instance`` names the
#: process that runs it; without one, a fine-tune or an hour of keep warm says when it ends.
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
    CheckConstraint(
        "state IN ('pending', 'succeeded', 'failed', 'released', 'credit')", name="state"
    ),
    Index(None, "state", "accepted_at"),
)

#: Double entry: an operation's entries sum to zero, and so do an account's books.
ledger_entries = Table(
    "ledger_entries",
    metadata,
    Column(
        "id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    Column("operation_id", Text, ForeignKey("operations.id"), nullable=False, index=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("book", Text, nullable=False),
    Column("amount_nano", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    CheckConstraint("book IN ('wallet', 'held', 'revenue', 'funding')", name="book"),
    Index(None, "account_id", "book"),
)

#: The sums of ``ledger_entries``, kept in the same transactions.
balances = Table(
    "balances",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("book", Text, primary_key=True),
    Column("amount_nano", BigInteger, nullable=False),
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

#: Answers kept for feedback; ``request``, ``results``, ``outcome_names`` and ``metadata`` are JSON,
#: ``total_ms`` is what the answer took, where it is known.
decisions = Table(
    "decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("created_at", Double, nullable=False, index=True),
    Column("model", Text, nullable=False),
    Column("version", Text),
    Column("request", LargeBinary, nullable=False),
    Column("results", LargeBinary, nullable=False),
    Column("outcome_names", LargeBinary, nullable=False),
    Column("metadata", LargeBinary),
    Column("total_ms", Double),
    Index(None, "account_id", "created_at"),
)

#: The outcome observed for one decision of an answer; ``outcome`` is JSON.
feedback = Table(
    "feedback",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("outcome", LargeBinary, nullable=False),
    Column("recorded_at", Double, nullable=False),
)

#: Datasets; ``version`` is the latest, ``listed_at`` is ``used_at``, else ``created_at``, and
#: ``receipt`` is JSON: what the first version came in. A deleted one keeps its id alone.
datasets = Table(
    "datasets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("used_at", Double),
    Column("listed_at", Double, nullable=False),
    Column("archived_at", Double),
    Column("deleted_at", Double),
    Column("receipt", LargeBinary),
    Index(None, "account_id", "listed_at"),
)

#: Versions of datasets, which never change; ``manifest`` is JSON and names their files.
dataset_versions = Table(
    "dataset_versions",
    metadata,
    Column("dataset_id", Text, ForeignKey("datasets.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("added_via", Text, nullable=False),
    Column("added_from", Text),
    Column("manifest", LargeBinary, nullable=False),
    CheckConstraint("added_via IN ('api', 'jsonl', 'csv', 'labeling')", name="added_via"),
)

#: One model on the evaluation rows of one version. ``metrics`` and ``error`` are JSON, the hashes
#: name files of the store of predictions, ``runner`` is the opening of the state that runs it, and
#: ``attempt`` counts how often its generation was given to the job queue.
evaluations = Table(
    "evaluations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("dataset_id", Text, nullable=False),
    Column("dataset_version", Integer, nullable=False),
    Column("dataset_sha256", Text, nullable=False),
    Column("evaluation_sha256", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("model_id", Text, nullable=False),
    Column("model_sha256", Text, nullable=False),
    Column("model_label", Text, nullable=False),
    Column("model_name", Text),
    Column("version", Integer),
    Column("named", Text),
    Column("training_job_id", Text),
    Column("status", Text, nullable=False, index=True),
    Column("generation", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("runner", Text),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("evaluation_rows", Integer, nullable=False),
    Column("completed_rows", Integer, nullable=False),
    Column("decisions", Integer, nullable=False),
    Column("metrics", LargeBinary),
    Column("error", LargeBinary),
    Column("predictions_sha256", Text),
    Column("detail_sha256", Text),
    CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
        name="status",
    ),
    CheckConstraint("completed_rows >= 0 AND completed_rows <= evaluation_rows", name="progress"),
    Index(None, "account_id", "dataset_id", "created_at"),
)

#: Files of predictions of an evaluation that has not succeeded; ``rows`` were scored in each.
evaluation_parts = Table(
    "evaluation_parts",
    metadata,
    Column(
        "evaluation_id", Text, ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("number", Integer, primary_key=True),
    Column("rows", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
)

#: Where an account's lines of models are in their history: ``revision`` counts their changes, and
#: ``n_windows`` the hours of keep warm that were ever held.
account_lines = Table(
    "account_lines",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("n_windows", Integer, nullable=False),
)

#: Families by name; ``body`` is JSON: all that is kept of one.
families = Table(
    "families",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("dataset_id", Text, nullable=False, index=True),
    Column("created_at", Double, nullable=False),
    Column("deleted_at", Double),
    Column("body", LargeBinary, nullable=False),
)

#: Models of families' lines, also those that are gone; ``adapter`` is their identity and ``body``
#: is JSON. A number is given once.
tuned_models = Table(
    "tuned_models",
    metadata,
    Column("adapter", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("family", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    CheckConstraint("status IN ('ready', 'deleted', 'discarded')", name="status"),
    UniqueConstraint("account_id", "family", "version"),
)

#: Fine-tunes. ``body``, ``progress`` and ``curve`` are JSON, the hashes name what it made in the
#: stores of artifacts and of records, ``runner`` is the opening of the state that runs it, and
#: ``attempt`` counts how often its generation was given to the job queue.
fine_tunes = Table(
    "fine_tunes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("family", Text, nullable=False),
    Column("dataset_id", Text, nullable=False, index=True),
    Column("dataset_version", Integer, nullable=False),
    Column("status", Text, nullable=False, index=True),
    Column("generation", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("runner", Text),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("progress", LargeBinary),
    Column("curve", LargeBinary),
    Column("artifact_sha256", Text),
    Column("records_sha256", Text),
    CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
        name="status",
    ),
    Index(None, "account_id", "created_at"),
)

#: What happened to fine-tunes; ``seq`` counts from 1 without gaps.
fine_tune_events = Table(
    "fine_tune_events",
    metadata,
    Column("job_id", Text, ForeignKey("fine_tunes.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("type", Text, nullable=False),
    Column("message", Text, nullable=False),
)

#: The hours of keep warm that are held, one for each model kept warm.
keep_warm_windows = Table(
    "keep_warm_windows",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("adapter", Text, primary_key=True),
    Column("id", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("reserved_nano", BigInteger, nullable=False),
)

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
