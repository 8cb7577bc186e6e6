"""Rows of prompt-tuning jobs."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from steelyard.job_frame.store import JobStore
from steelyard.prompt_tuning.tables import prompt_tunings
from steelyard.prompt_tuning.wire import PROMPT_TUNING

#: The prompt-tuning jobs of every account.
JOBS = JobStore(
    PROMPT_TUNING,
    table=prompt_tunings,
    advice="look at GET /v1/prompt-tuning/jobs",
    models=("model_id",),
)


def is_rerun(connection: Connection, row: Row[Any]) -> bool:
    """Whether the same was tuned before: decision, rows, model and effort."""
    table = prompt_tunings.c
    earlier = select(table.id).where(
        table.account_id == row.account_id,
        table.id != row.id,
        table.dataset_id == row.dataset_id,
        table.dataset_version == row.dataset_version,
        table.decision == row.decision,
        table.model_sha256 == row.model_sha256,
        table.effort == row.effort,
        table.status == "succeeded",
    )
    return connection.execute(earlier.limit(1)).first() is not None


def succeeded_on(connection: Connection, dataset_id: str) -> list[Row[Any]]:
    """Return the jobs of a dataset with open label issues, the newest first."""
    rows = connection.execute(
        select(prompt_tunings)
        .where(
            prompt_tunings.c.dataset_id == dataset_id,
            prompt_tunings.c.status == "succeeded",
            prompt_tunings.c.dismissed_at.is_(None),
        )
        .order_by(prompt_tunings.c.created_at.desc(), prompt_tunings.c.id.desc())
    )
    return list(rows)
