"""Rows of fine-tunes, beside what their account's lineage says of them: who runs one and what it made.

What a status means, and when it changes, is the lineage's business (``steelyard.families``): their
writer keeps ``status`` and ``body`` (``steelyard.families.store``). A fine-tune that runs
belongs to one opening of the state, its runner; only the runner writes progress and results, and
only while the generation is the one it claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from steelyard.datasets.tables import datasets
from steelyard.families.fine_tune_wire import JobEvent
from steelyard.families.lineage.lineage import FineTune
from steelyard.families.tables import fine_tune_events, fine_tunes, tuned_models
from steelyard.jobs import store as jobs
from steelyard.jobs.store import PendingJob
from steelyard.storage.pages import RowPage, newest_first
from steelyard.wire.decoding import decoder_of

_decode_job = decoder_of(FineTune).decode


def find_fine_tune(
    connection: Connection, job_id: str, account_id: str | None = None
) -> Row[Any] | None:
    """Return a fine-tune; ``None`` when there is none, or it is not the account's."""
    wanted = [fine_tunes.c.id == job_id]
    if account_id is not None:
        wanted.append(fine_tunes.c.account_id == account_id)
    return connection.execute(select(fine_tunes).where(*wanted)).first()


def job_of(row: Row[Any]) -> FineTune:
    """Return what the lineage says of a fine-tune's row."""
    return _decode_job(row.body)


def page_of_account(
    connection: Connection,
    account_id: str,
    *,
    statuses: Sequence[str] = (),
    dataset_id: str | None = None,
    limit: int,
    cursor: str | None,
) -> RowPage:
    """Return a page of an account's fine-tunes, the newest first."""
    where: list[ColumnElement[bool]] = []
    if statuses:
        where.append(fine_tunes.c.status.in_(statuses))
    if dataset_id is not None:
        where.append(fine_tunes.c.dataset_id == dataset_id)
    return newest_first(
        connection,
        fine_tunes,
        owned=fine_tunes.c.account_id == account_id,
        where=where,
        limit=limit,
        cursor=cursor,
    )


def events_of(connection: Connection, job_id: str) -> list[JobEvent]:
    """Return what happened to a fine-tune, oldest first."""
    found = connection.execute(
        select(*(fine_tune_events.c[name] for name in JobEvent.__struct_fields__))
        .where(fine_tune_events.c.job_id == job_id)
        .order_by(fine_tune_events.c.seq)
    )
    return [JobEvent(**row) for row in found.mappings()]


def deleted_datasets(connection: Connection, dataset_ids: Sequence[str]) -> set[str]:
    """Return those of some datasets whose rows are gone."""
    return set(
        connection.execute(
            select(datasets.c.id).where(
                datasets.c.id.in_(dataset_ids), datasets.c.deleted_at.is_not(None)
            )
        ).scalars()
    )


def has_unfinished(connection: Connection, dataset_id: str | None = None) -> bool:
    """Return whether there is work, on any dataset or on one."""
    return jobs.has_unfinished(connection, fine_tunes, dataset_id)


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
