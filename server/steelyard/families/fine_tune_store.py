"""Rows of fine-tunes, beside their account's lineage: who runs one, and the model it made.

The meaning of a status, and its changes, are the lineage's business (``steelyard.families``): their
writer keeps ``status`` and ``body`` (``steelyard.families.store``). A fine-tune that runs
belongs to one opening of the state, its runner; only the runner writes progress and results, and
only while the generation is the one it claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select

from steelyard.datasets.tables import datasets
from steelyard.families.fine_tune_wire import FINE_TUNE, JobEvent
from steelyard.families.lineage.lineage import FineTune
from steelyard.families.tables import fine_tune_events, fine_tunes, tuned_models
from steelyard.job_frame.store import JobStore
from steelyard.jobs import store as jobs
from steelyard.jobs.store import PendingJob
from steelyard.wire.decoding import decoder_of

_decode_job = decoder_of(FineTune).decode

#: The fine-tunes of every account.
FINE_TUNES = JobStore(
    FINE_TUNE,
    table=fine_tunes,
    advice="look at GET /v1/fine-tuning/jobs",
    is_priced=False,
)


def job_of(row: Row[Any]) -> FineTune:
    """Return the lineage's entry for a fine-tune's row."""
    return _decode_job(row.body)


def events_of(connection: Connection, job_id: str) -> list[JobEvent]:
    """Return the events of a fine-tune, oldest first."""
    records = connection.execute(
        select(*(fine_tune_events.c[name] for name in JobEvent.__struct_fields__))
        .where(fine_tune_events.c.job_id == job_id)
        .order_by(fine_tune_events.c.seq)
    )
    return [JobEvent(**row) for row in records.mappings()]


def deleted_datasets(connection: Connection, dataset_ids: Sequence[str]) -> set[str]:
    """Return those of some datasets whose rows are gone."""
    return set(
        connection.execute(
            select(datasets.c.id).where(
                datasets.c.id.in_(dataset_ids), datasets.c.deleted_at.is_not(None)
            )
        ).scalars()
    )


def count_queued(connection: Connection) -> int:
    """Count the fine-tunes of every account that wait for a trainer."""
    return connection.execute(
        select(func.count()).select_from(fine_tunes).where(fine_tunes.c.status == "queued")
    ).scalar_one()


def set_progress(connection: Connection, job: PendingJob, progress: bytes) -> bool:
    """Keep where a running fine-tune is; returns whether the run still counts.

    One that gets further begins to count its attempts anew.
    """
    return jobs.set_of_run(connection, fine_tunes, job, progress=progress, attempt=1)


def live_artifacts(connection: Connection) -> set[str]:
    """Return the hash of every artifact that a model needs which is neither deleted nor discarded."""
    return set(
        connection.execute(
            select(fine_tunes.c.artifact_sha256)
            .join(tuned_models, tuned_models.c.job_id == fine_tunes.c.id)
            .where(tuned_models.c.status == "ready", fine_tunes.c.artifact_sha256.is_not(None))
        ).scalars()
    )


def live_records(connection: Connection) -> set[str]:
    """Return the hash of every file of held-out records whose dataset still is."""
    gone = select(datasets.c.id).where(datasets.c.deleted_at.is_not(None))
    return set(
        connection.execute(
            select(fine_tunes.c.records_sha256).where(
                fine_tunes.c.records_sha256.is_not(None), fine_tunes.c.dataset_id.not_in(gone)
            )
        ).scalars()
    )
