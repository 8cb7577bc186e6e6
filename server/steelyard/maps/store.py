"""Rows of maps."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, delete, select, update

from steelyard.accounts.store_owner import sweep_owned
from steelyard.job_frame.store import JobStore
from steelyard.maps.progress import decode_made
from steelyard.maps.tables import dataset_maps
from steelyard.maps.wire import MAP
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.jobs import UNFINISHED

#: The maps of every account.
MAPS = JobStore(
    MAP,
    table=dataset_maps,
    advice="look at GET /v1/maps",
    is_priced=False,
)


def find_of(
    connection: Connection, dataset_id: str, version: int, model_sha256: str
) -> Row[Any] | None:
    """Return the map of a version by a model; ``None`` when none was asked for."""
    table = dataset_maps.c
    conditions = (
        table.dataset_id == dataset_id,
        table.dataset_version == version,
        table.model_sha256 == model_sha256,
    )
    return connection.execute(select(dataset_maps).where(*conditions)).first()


def requeue(connection: Connection, row: Row[Any], *, at: float) -> None:
    """Queue a failed or cancelled map again; a cancelled one keeps its finished parts."""
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
