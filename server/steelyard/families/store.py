"""Rows of an account's lineage of models: loaded as one value, and written where it changed.

An account's lineage has a revision, which every change counts up: lineage that was read at a revision
may be used as long as it is the newest. The meaning of the rows is ``steelyard.families``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, insert, select, update

from steelyard.families.fine_tune_wire import JobEvent
from steelyard.families.lineage.lineage import (
    FamilyModel,
    FineTune,
    Lineage,
    TunedFamily,
    WarmHour,
    adapter_of,
)
from steelyard.families.tables import (
    account_lines,
    families,
    fine_tune_events,
    fine_tunes,
    keep_warm_windows,
    tuned_models,
)
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled

_encode = msgspec.json.Encoder().encode
_decode_family = decoder_of(TunedFamily).decode
_decode_model = decoder_of(FamilyModel).decode
_decode_job = decoder_of(FineTune).decode

_REVISION = select(account_lines.c.revision).where(
    account_lines.c.account_id == bindparam("account")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLineage:
    """An account's lineage at a revision."""

    revision: int = 0
    lineage: Lineage = field(default_factory=Lineage)
    artifacts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def lock_revision(connection: Connection, account_id: str) -> int:
    """Return the newest revision and keep other writers out until the transaction ends."""
    revision = connection.execute(_REVISION.with_for_update(), {"account": account_id}).scalar()
    return revision or 0


def revision_of(connection: Connection, account_id: str) -> int:
    """Return the newest revision of an account's lineage; 0 when there never was any."""
    return connection.execute(_REVISION, {"account": account_id}).scalar() or 0


def all_revisions(connection: Connection) -> dict[str, int]:
    """Return the newest revision of every account that has lineage."""
    revisions = connection.execute(select(account_lines.c.account_id, account_lines.c.revision))
    return {row.account_id: row.revision for row in revisions}


def load_lineage(connection: Connection, account_id: str) -> StoredLineage:
    """Return an account's lineage as the connection sees them.

    Outside of a write PostgreSQL may let each statement see other commits; the revision is that of
    all of them when ``revision_of`` is the same afterwards.
    """
    known = connection.execute(
        select(account_lines).where(account_lines.c.account_id == account_id)
    ).first()
    if known is None:
        return StoredLineage()
    models = [_decode_model(row.body) for row in _bodies(connection, tuned_models, account_id)]
    tuned_families = [_decode_family(row.body) for row in _bodies(connection, families, account_id)]
    adapters = {model.adapter for model in models}
    jobs: dict[str, FineTune] = {}
    artifacts: dict[str, str] = {}
    for row in _bodies(connection, fine_tunes, account_id, fine_tunes.c.artifact_sha256):
        job = _decode_job(row.body)
        jobs[job.id] = job
        if row.artifact_sha256 is not None and adapter_of(job.id) in adapters:
            artifacts[adapter_of(job.id)] = row.artifact_sha256
    lineage = Lineage(
        families={family.name: family for family in tuned_families},
        models={model.adapter: model for model in models},
        jobs=jobs,
        windows=_load_windows(connection, account_id),
        n_windows=known.n_windows,
    )
    return StoredLineage(
        revision=known.revision, lineage=lineage, artifacts=MappingProxyType(artifacts)
    )


def save_lineage(
    connection: Connection, account_id: str, before: StoredLineage, after: Lineage
) -> StoredLineage:
    """Write the changes, as the next revision; return the same value without changes."""
    old = before.lineage
    if old == after:
        return before

    def family_row(name: str, family: TunedFamily) -> dict[str, Any]:
        return {
            "account_id": account_id,
            "name": name,
            "dataset_id": family.dataset_id,
            "created_at": family.created_at,
            "deleted_at": family.deleted_at,
            "body": _encode(family),
        }

    def model_row(adapter: str, model: FamilyModel) -> dict[str, Any]:
        return {
            "adapter": adapter,
            "account_id": account_id,
            "family": model.family,
            "version": model.version,
            "job_id": model.job_id,
            "status": model.status,
            "created_at": model.created_at,
            "body": _encode(model),
        }

    def job_row(job_id: str, job: FineTune) -> dict[str, Any]:
        return {
            "id": job_id,
            "account_id": account_id,
            "family": job.family,
            "dataset_id": job.dataset_id,
            "dataset_version": job.dataset_version,
            "status": job.status,
            "created_at": job.created_at,
            "updated_at": job.updated_at,
            "body": _encode(job),
        }

    def window_row(adapter: str, window: WarmHour) -> dict[str, Any]:
        return {"account_id": account_id, "adapter": adapter, **msgspec.structs.asdict(window)}

    _save(connection, families, old.families, after.families, family_row)
    _save(connection, tuned_models, old.models, after.models, model_row)
    _save(connection, fine_tunes, old.jobs, after.jobs, job_row, generation=1, attempt=1)
    _save(connection, keep_warm_windows, old.windows, after.windows, window_row)
    revision = before.revision + 1
    values = {"revision": revision, "n_windows": after.n_windows}
    if before.revision == 0:
        connection.execute(insert(account_lines), {"account_id": account_id, **values})
    else:
        connection.execute(
            update(account_lines).where(account_lines.c.account_id == account_id).values(**values)
        )
    return StoredLineage(revision=revision, lineage=after, artifacts=before.artifacts)


def artifact_of(connection: Connection, job_id: str) -> str | None:
    """Return the hash of a fine-tune's artifact; ``None`` before there is one."""
    sha256: str | None = connection.execute(
        select(fine_tunes.c.artifact_sha256).where(fine_tunes.c.id == job_id)
    ).scalar()
    return sha256


def insert_event(connection: Connection, job_id: str, event: JobEvent) -> None:
    """Add an event to a fine-tune."""
    connection.execute(
        insert(fine_tune_events), {"job_id": job_id, **msgspec.structs.asdict(event)}
    )


def find_tuned_model(connection: Connection, account_id: str, adapter: str) -> FamilyModel | None:
    """Return a model of an account's lineage by its adapter; ``None`` when there never was one."""
    statement = select(tuned_models.c.body).where(
        tuned_models.c.account_id == account_id, tuned_models.c.adapter == adapter
    )
    body = connection.execute(statement).scalar()
    return None if body is None else _decode_model(body)


def dataset_of_family(connection: Connection, account_id: str, name: str) -> str | None:
    """Return the dataset that a family of an account grows on; ``None`` when there is no such one."""
    dataset_id: str | None = connection.execute(
        select(families.c.dataset_id).where(
            families.c.account_id == account_id,
            families.c.name == name,
            families.c.deleted_at.is_(None),
        )
    ).scalar()
    return dataset_id


def _bodies(connection: Connection, table: Table, account_id: str, *further: Any) -> Any:
    statement = select(table.c.body, *further).where(table.c.account_id == account_id)
    return connection.execute(statement)


def _load_windows(connection: Connection, account_id: str) -> dict[str, WarmHour]:
    windows = connection.execute(
        select(keep_warm_windows).where(keep_warm_windows.c.account_id == account_id)
    )
    return {row.adapter: filled(WarmHour, row) for row in windows}


def _save(
    connection: Connection,
    table: Table,
    old: dict[str, Any],
    new: dict[str, Any],
    row_of: Callable[[str, Any], dict[str, Any]],
    **first: Any,
) -> None:
    """Write the changed rows, and remove the deleted ones; ``first`` is of new rows."""
    keys = table.primary_key.columns.keys()

    def same(row: dict[str, Any]) -> list[ColumnElement[bool]]:
        return [table.c[key] == row[key] for key in keys]

    for name in old.keys() - new.keys():
        connection.execute(delete(table).where(*same(row_of(name, old[name]))))
    for name, value in new.items():
        if old.get(name) == value:
            continue
        row = row_of(name, value)
        if name in old:
            connection.execute(update(table).where(*same(row)).values(**row))
        else:
            connection.execute(insert(table), {**row, **first})
