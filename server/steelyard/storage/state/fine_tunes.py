"""Rows of fine-tunes, beside what their account's lines say of them: who runs one and what it made.

What a status means, and when it changes, is the lines' business (``steelyard.families``): their
writer keeps ``status`` and ``body`` (``steelyard.storage.state.lines``). A fine-tune that runs
belongs to one opening of the state, its runner; only the runner writes progress and results, and
only while the generation is the one it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, func, select, update

from steelyard.families.line import Job
from steelyard.storage.state.pages import RowPage, newest_first
from steelyard.storage.state.tables import datasets, fine_tune_events, fine_tunes, tuned_models
from steelyard.wire.fine_tuning import JobEvent

#: Statuses of a fine-tune that has not ended.
UNFINISHED = ("queued", "running", "cancelling")

_decode_job = msgspec.json.Decoder(Job).decode


def find_fine_tune(
    connection: Connection, job_id: str, account_id: str | None = None
) -> Row[Any] | None:
    """Give a fine-tune; ``None`` when there is none, or it is not the account's."""
    wanted = [fine_tunes.c.id == job_id]
    if account_id is not None:
        wanted.append(fine_tunes.c.account_id == account_id)
    return connection.execute(select(fine_tunes).where(*wanted)).first()


def job_of(row: Row[Any]) -> Job:
    """Give what the lines say of a fine-tune's row."""
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
    """Give a page of an account's fine-tunes, the newest first; raises as ``newest_first``."""
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
    """Give what happened to a fine-tune, oldest first."""
    found = connection.execute(
        select(fine_tune_events)
        .where(fine_tune_events.c.job_id == job_id)
        .order_by(fine_tune_events.c.seq)
    )
    return [
        JobEvent(seq=row.seq, created_at=row.created_at, type=row.type, message=row.message)
        for row in found
    ]


def deleted_datasets(connection: Connection, dataset_ids: Sequence[str]) -> set[str]:
    """Give those of some datasets whose rows are gone."""
    return set(
        connection.execute(
            select(datasets.c.id).where(
                datasets.c.id.in_(dataset_ids), datasets.c.deleted_at.is_not(None)
            )
        ).scalars()
    )


def unfinished(connection: Connection) -> Sequence[Any]:
    """Give every fine-tune that has not ended, the oldest first."""
    return connection.execute(
        select(
            fine_tunes.c.id,
            fine_tunes.c.account_id,
            fine_tunes.c.status,
            fine_tunes.c.generation,
            fine_tunes.c.attempt,
            fine_tunes.c.runner,
            fine_tunes.c.updated_at,
        )
        .where(fine_tunes.c.status.in_(UNFINISHED))
        .order_by(fine_tunes.c.created_at, fine_tunes.c.id)
    ).all()


def has_unfinished(connection: Connection, dataset_id: str | None = None) -> bool:
    """Tell whether there is work, on any dataset or on one."""
    wanted: list[ColumnElement[bool]] = [fine_tunes.c.status.in_(UNFINISHED)]
    if dataset_id is not None:
        wanted.append(fine_tunes.c.dataset_id == dataset_id)
    return connection.execute(select(fine_tunes.c.id).where(*wanted).limit(1)).first() is not None


def count_queued(connection: Connection) -> int:
    """Count the fine-tunes of every account that wait for a trainer."""
    return connection.execute(
        select(func.count()).select_from(fine_tunes).where(fine_tunes.c.status == "queued")
    ).scalar_one()


def begin_run(connection: Connection, job_id: str, generation: int, runner: str) -> Row[Any] | None:
    """Take a queued or interrupted fine-tune; ``None`` when there is nothing to run.

    Its status is the lines': give it with ``steelyard.families.fine_tunes.start_job`` in the same
    transaction.
    """
    taken = connection.execute(
        update(fine_tunes)
        .where(
            fine_tunes.c.id == job_id,
            fine_tunes.c.generation == generation,
            fine_tunes.c.status.in_(("queued", "running")),
        )
        .values(runner=runner)
    )
    return find_fine_tune(connection, job_id) if taken.rowcount else None


def set_progress(
    connection: Connection,
    job_id: str,
    generation: int,
    runner: str,
    progress: bytes,
) -> bool:
    """Keep where a running fine-tune is; gives whether the run still counts.

    Parameters
    ----------
    connection : sqlalchemy.Connection
        In a transaction.
    job_id, generation, runner
        The run.
    progress : bytes
        A ``JobProgress`` as JSON.
    """
    return _of_run(connection, job_id, generation, runner, progress=progress)


def set_results(
    connection: Connection,
    job_id: str,
    generation: int,
    runner: str,
    *,
    artifact_sha256: str | None,
    records_sha256: str,
    curve: bytes,
) -> bool:
    """Keep what a fine-tune made; gives whether the run still counts.

    Parameters
    ----------
    connection : sqlalchemy.Connection
        In the transaction in which it ends: as ``also`` of
        ``steelyard.services.lines.LineKeeper.apply_now``.
    job_id, generation, runner
        The run.
    artifact_sha256 : str or None
        Name of its model's folder in the store of artifacts; needed where the gate passed.
    records_sha256 : str
        Name of its held-out records in their store.
    curve : bytes
        A list of ``CurvePoint`` as JSON.
    """
    return _of_run(
        connection,
        job_id,
        generation,
        runner,
        artifact_sha256=artifact_sha256,
        records_sha256=records_sha256,
        curve=curve,
    )


def set_attempt(connection: Connection, job_id: str, generation: int, attempt: int) -> None:
    """Count an attempt of a generation that has not ended."""
    connection.execute(
        update(fine_tunes)
        .where(
            fine_tunes.c.id == job_id,
            fine_tunes.c.generation == generation,
            fine_tunes.c.status.in_(UNFINISHED),
        )
        .values(attempt=attempt)
    )


def live_artifacts(connection: Connection) -> set[str]:
    """Give the hash of every artifact that a model needs which is neither deleted nor discarded."""
    return set(
        connection.execute(
            select(fine_tunes.c.artifact_sha256)
            .join(tuned_models, tuned_models.c.job_id == fine_tunes.c.id)
            .where(tuned_models.c.status == "ready", fine_tunes.c.artifact_sha256.is_not(None))
        ).scalars()
    )


def live_records(connection: Connection) -> set[str]:
    """Give the hash of every file of held-out records whose dataset still is."""
    gone = select(datasets.c.id).where(datasets.c.deleted_at.is_not(None))
    return set(
        connection.execute(
            select(fine_tunes.c.records_sha256).where(
                fine_tunes.c.records_sha256.is_not(None), fine_tunes.c.dataset_id.not_in(gone)
            )
        ).scalars()
    )


def _of_run(
    connection: Connection, job_id: str, generation: int, runner: str, **values: Any
) -> bool:
    # The lines may have ended it in the same transaction, so its status does not matter here.
    kept = connection.execute(
        update(fine_tunes)
        .where(
            fine_tunes.c.id == job_id,
            fine_tunes.c.generation == generation,
            fine_tunes.c.runner == runner,
        )
        .values(**values)
    )
    return kept.rowcount > 0
