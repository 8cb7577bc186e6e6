"""Rows of maps.

A map that is computed belongs to one opening of the state, its runner; only the runner writes
progress, and only while the generation is the one it claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from steelyard.accounts.store_owner import sweep_owned
from steelyard.jobs import store as jobs
from steelyard.jobs.store import UNFINISHED, PendingJob
from steelyard.maps.progress import decode_made
from steelyard.maps.tables import dataset_maps
from steelyard.operations import held_jobs
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.storage.pages import RowPage, newest_first

_KIND = "map"


def find_map(connection: Connection, map_id: str, account_id: str | None = None) -> Row[Any] | None:
    """Return a map; ``None`` when there is none, or it is not the account's."""
    return held_jobs.find_job(connection, dataset_maps, map_id, account_id)


def find_of(
    connection: Connection, dataset_id: str, version: int, model_sha256: str
) -> Row[Any] | None:
    """Return the map of a version by a model; ``None`` when none was asked for."""
    table = dataset_maps.c
    wanted = (
        table.dataset_id == dataset_id,
        table.dataset_version == version,
        table.model_sha256 == model_sha256,
    )
    return connection.execute(select(dataset_maps).where(*wanted)).first()


def page_of_maps(
    connection: Connection,
    account_id: str,
    *,
    dataset_id: str | None,
    limit: int,
    cursor: str | None,
) -> RowPage:
    """Return a page of an account's maps, the newest first."""
    where: list[ColumnElement[bool]] = []
    if dataset_id is not None:
        where.append(dataset_maps.c.dataset_id == dataset_id)
    return newest_first(
        connection,
        dataset_maps,
        owned=dataset_maps.c.account_id == account_id,
        where=where,
        limit=limit,
        cursor=cursor,
    )


def insert_map(connection: Connection, values: dict[str, Any]) -> None:
    """Add a map that waits."""
    connection.execute(
        insert(dataset_maps), {"status": "queued", "generation": 1, "attempt": 1, **values}
    )


def requeue(connection: Connection, row: Row[Any], *, at: float) -> None:
    """Queue a map again that failed or was cancelled; one that was cancelled keeps what it has."""
    connection.execute(
        update(dataset_maps)
        .where(dataset_maps.c.id == row.id)
        .values(
            status="queued",
            generation=row.generation + 1,
            attempt=1,
            runner=None,
            error=None,
            progress=row.progress if row.status == "cancelled" else None,
            updated_at=at,
        )
    )


def has_unfinished(connection: Connection, dataset_id: str | None = None) -> bool:
    """Return whether there is a map that has not ended, of any dataset or of one."""
    return jobs.has_unfinished(connection, dataset_maps, dataset_id)


def move(
    connection: Connection,
    job_id: str,
    status: str,
    *,
    at: float,
    only_if: Sequence[str],
    **values: Any,
) -> bool:
    """Move a map to another status; returns whether it was in one of those."""
    return jobs.move(
        connection, dataset_maps, job_id, status, at=at, only_if=only_if, kind=_KIND, **values
    )


def save_progress(connection: Connection, job: PendingJob, progress: bytes, *, at: float) -> bool:
    """Write how far a map is; returns whether the run still counted."""
    return jobs.set_of_run(
        connection,
        dataset_maps,
        job,
        statuses=("running", "cancelling"),
        progress=progress,
        updated_at=at,
        attempt=1,
    )


def finish_run(connection: Connection, job: PendingJob, result_sha256: str, *, at: float) -> bool:
    """Write which file has the points; returns whether the run still counted."""
    is_ours = jobs.set_of_run(
        connection,
        dataset_maps,
        job,
        statuses=("running",),
        status="succeeded",
        result_sha256=result_sha256,
        progress=None,
        updated_at=at,
    )
    if is_ours:
        jobs.publish_end(connection, _KIND, job.id, job.account_id, "succeeded")
    return is_ours


def erase_maps(connection: Connection, dataset_id: str) -> None:
    """Forget the maps of a dataset that is deleted; their files are swept."""
    connection.execute(delete(dataset_maps).where(dataset_maps.c.dataset_id == dataset_id))


def live_files(connection: Connection) -> set[str]:
    """Return the hash of every file that a map has, or needs to go on."""
    table = dataset_maps.c
    results = select(table.result_sha256).where(table.result_sha256.is_not(None))
    live = set(connection.execute(results).scalars())
    going = select(table.progress).where(table.progress.is_not(None), table.status.in_(UNFINISHED))
    for progress in connection.execute(going).scalars():
        live.update(decode_made(progress).files)
    return live


def sweep_files(state: State, store: FrameStore) -> None:
    """Remove the files that no map refers to; it blocks."""
    sweep_owned(state, store, live_files)
