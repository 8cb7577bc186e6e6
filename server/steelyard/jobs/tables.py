"""The columns that the table of every kind of job has."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, Column, Double, Integer, Text


def job_columns() -> tuple[Column[Any], ...]:
    """Return the columns that ``steelyard.jobs.store`` reads and writes, beside a job's id.

    ``runner`` is the opening of the state that runs it, and ``attempt`` counts how often its
    generation was given to the job queue.
    """
    return (
        Column("status", Text, nullable=False, index=True),
        Column("generation", Integer, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("runner", Text),
        Column("created_at", Double, nullable=False),
        Column("updated_at", Double, nullable=False),
    )


def status_check() -> CheckConstraint:
    """Return the check of a job's status, for kinds with no further ones."""
    return CheckConstraint(
        "status IN ('queued', 'running', 'cancelling', 'cancelled', 'succeeded', 'failed')",
        name="status",
    )
