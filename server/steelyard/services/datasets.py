"""The datasets of an account: made, listed, renamed, restored and deleted, and given to other work.

A version's files are durable before the state names them, and the state forgets them before they
are removed, so that a dataset that is told of has all of its rows, whenever a process dies.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from sqlalchemy import Connection

from steelyard.datasets.bodies import check_fields
from steelyard.datasets.definitions import TuningLimits, tell_readiness
from steelyard.datasets.versions import Manifest
from steelyard.errors import (
    DatasetChangedError,
    DatasetMismatchError,
    SteelyardError,
    VersionInUseError,
)
from steelyard.ids import new_id
from steelyard.services.bodies import read_body
from steelyard.services.caller import Caller
from steelyard.services.dataset_access import require_dataset, require_version
from steelyard.services.dataset_ingest import (
    MadeRows,
    RowBounds,
    SentRows,
    check_rows,
    read_sent,
    write_version,
)
from steelyard.services.dataset_versions import DatasetAt, LabelledRow, read_side
from steelyard.services.idempotency import SECONDS_A_DAY, KeyedWrites, payload_sha256
from steelyard.services.reply import Reply
from steelyard.services.store_owner import sweep_owned
from steelyard.services.uploads import Upload
from steelyard.storage.frames.pages import RowStore
from steelyard.storage.frames.scanning import load_definitions
from steelyard.storage.frames.store import FrameStore
from steelyard.storage.state import State
from steelyard.storage.state.datasets import (
    DatasetRow,
    VersionRow,
    advance_dataset,
    dataset_of_family,
    erase_dataset,
    insert_dataset,
    insert_version,
    live_files,
    page_datasets,
    rename_dataset,
    set_dataset_archived,
    versions_of,
)
from steelyard.wire.datasets import (
    AddRows,
    CreateDataset,
    Dataset,
    DatasetCheck,
    DatasetPage,
    DatasetVersions,
    DeletedDataset,
    LabelsToCheck,
    RenameDataset,
    RestoreDataset,
    Side,
)
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import Violations, show

_log = logging.getLogger(__name__)

#: Files that no version needs are left alone for this long, in seconds: a version that has the same
#: rows may be on its way. No write takes as long.
ERASE_AFTER_S = 3600.0

#: Says in the deleting transaction what still reads a dataset, as ``an evaluation``; ``None`` when
#: nothing of its kind does.
ReaderCheck = Callable[[Connection, str], str | None]


class DatasetService:
    """The datasets of every account.

    Parameters
    ----------
    state : steelyard.storage.state.State
        Names the versions.
    store : FrameStore
        Holds their rows, and nothing else: what no version needs is removed from it.
    writes : KeyedWrites
        Writes once per idempotency key.
    bounds : RowBounds
        How many rows a dataset may have.
    tuning : TuningLimits, optional
        What prompt tuning needs.
    now : callable, optional
        Unix seconds.
    """

    def __init__(
        self,
        state: State,
        store: FrameStore,
        writes: KeyedWrites,
        *,
        bounds: RowBounds,
        tuning: TuningLimits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._store = store
        self._rows = RowStore(store)
        self._writes = writes
        self._bounds = bounds
        self._tuning = tuning
        self._now = now
        self._readers: list[ReaderCheck] = []

    def register_reader(self, check: ReaderCheck) -> None:
        """Let work that reads datasets keep them from being deleted while it runs."""
        self._readers.append(check)

    async def create(
        self,
        caller: Caller,
        upload: Upload,
        key: str | None,
        *,
        route: str,
        made: MadeRows | None = None,
    ) -> Reply:
        """Make a dataset of rows; a ``Dataset``.

        Parameters
        ----------
        caller : Caller
            Whose it will be.
        upload : Upload
            What came.
        key : str or None
            The idempotency key.
        route : str
            The route under which the key is kept.
        made : MadeRows, optional
            The request that the rows were made of, when they did not come with it.

        Raises
        ------
        steelyard.errors.SteelyardError
            ``InvalidRequestError`` for the fields, ``InvalidExampleError`` and the others of
            ``write_version`` for the rows. Nothing was stored then.
        """
        sent = await asyncio.to_thread(read_sent, upload, CreateDataset)
        sha256 = sent.sha256 if made is None else made.payload_sha256
        known = await self._writes.find(caller, route=route, key=key, payload_sha256=sha256)
        if known is not None:
            return known
        dataset_id = new_id("ds")
        manifest = await asyncio.to_thread(
            write_version, self._store, dataset_id, sent, self._bounds
        )
        now = self._now()
        row = DatasetRow(
            id=dataset_id,
            account_id=caller.account_id,
            name=sent.request.name or "",
            version=1,
            created_at=now,
            used_at=None,
            archived_at=None,
            deleted_at=None,
            receipt=sent.receipt,
        )

        def work(connection: Connection) -> bytes:
            insert_dataset(connection, row)
            insert_version(connection, _version_of(manifest, sent, now))
            return _answer(connection, row.tell(manifest), made)

        return await self._run(caller, route, key, sha256, work)

    async def check(self, upload: Upload) -> DatasetCheck:
        """Say what rows would make and what is wrong with them; nothing is stored.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            With everything wrong in the fields.
        """
        sent = await asyncio.to_thread(read_sent, upload, AddRows)
        return await asyncio.to_thread(check_rows, sent, self._bounds)

    async def add_rows(
        self,
        caller: Caller,
        dataset_id: str,
        upload: Upload,
        key: str | None,
        *,
        route: str,
        made: MadeRows | None = None,
    ) -> Reply:
        """Add rows to a dataset as its next version; a ``Dataset``.

        Raises
        ------
        steelyard.errors.DatasetChangedError
            When another version was made meanwhile; nothing was added.
        steelyard.errors.DatasetMismatchError
            When the family that the rows name grows on another dataset.
        steelyard.errors.SteelyardError
            As ``create`` does, and for rows that do not fit the dataset.
        """
        sent = await asyncio.to_thread(read_sent, upload, AddRows, dataset_id=dataset_id)
        sha256 = sent.sha256 if made is None else made.payload_sha256
        known = await self._writes.find(caller, route=route, key=key, payload_sha256=sha256)
        if known is not None:
            return known

        def latest(connection: Connection) -> Manifest:
            row = _require_growing(connection, caller, dataset_id, sent)
            if made is not None and made.previous not in {None, row.version}:
                raise DatasetChangedError(
                    f"The dataset got version {row.version} while the rows were made; nothing was "
                    "added. Send the request again."
                )
            return require_version(connection, row).manifest

        previous = await self._state.read(latest)
        manifest = await asyncio.to_thread(
            write_version, self._store, dataset_id, sent, self._bounds, previous
        )
        now = self._now()

        def work(connection: Connection) -> bytes:
            row = _require_growing(connection, caller, dataset_id, sent)
            if not advance_dataset(connection, dataset_id, previous=previous.version):
                raise DatasetChangedError(
                    f"The dataset got version {row.version} while these rows were read; nothing "
                    "was added. Send them again."
                )
            insert_version(connection, _version_of(manifest, sent, now))
            return _answer(connection, row.tell(manifest), made)

        return await self._run(caller, route, key, sha256, work)

    async def page(
        self, caller: Caller, *, archived: bool, limit: int, cursor: str | None
    ) -> DatasetPage:
        """Give a page of the account's datasets, most recently used first.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When the cursor is not known.
        """
        found, next_cursor = await self._state.read(
            lambda connection: page_datasets(
                connection, caller.account_id, archived=archived, limit=limit, cursor=cursor
            )
        )
        return DatasetPage(
            data=[row.tell(manifest) for row, manifest in found],
            has_more=next_cursor is not None,
            next_cursor=next_cursor,
        )

    async def get(self, caller: Caller, dataset_id: str) -> Dataset:
        """Give a dataset, with what prompt tuning can tune in it.

        Raises
        ------
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is none.
        """
        row, found = await self._state.read(
            functools.partial(self._find, account_id=caller.account_id, dataset_id=dataset_id)
        )
        manifest = found.manifest
        told = msgspec.structs.replace(row.tell(manifest), storage_window=None, labels_to_check=0)
        if manifest.method != "sft":
            return told
        definitions = await asyncio.to_thread(load_definitions, self._store, manifest)
        return msgspec.structs.replace(
            told, prompt_tuning=tell_readiness(definitions, self._tuning)
        )

    async def versions(self, caller: Caller, dataset_id: str) -> DatasetVersions:
        """Give every version, newest first; raises as ``get`` does."""

        def work(connection: Connection) -> list[VersionRow]:
            require_dataset(connection, caller.account_id, dataset_id)
            return versions_of(connection, dataset_id)

        rows = await self._state.read(work)
        return DatasetVersions(
            data=[row.manifest.tell(row.created_at, row.added_via, row.added_from) for row in rows]
        )

    async def labels_to_check(self, caller: Caller, dataset_id: str) -> LabelsToCheck:
        """Give the labels that prompt tuning doubted; raises as ``get`` does."""
        await self._state.read(
            lambda connection: require_dataset(connection, caller.account_id, dataset_id)
        )
        return LabelsToCheck(data=[])

    async def rename(
        self, caller: Caller, dataset_id: str, payload: bytes, key: str | None
    ) -> Reply:
        """Give a dataset another name; a ``Dataset``.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When the name cannot be one.
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is no such dataset.
        """
        request = await read_body(functools.partial(_read, shape=RenameDataset), payload)

        def work(connection: Connection) -> bytes:
            require_dataset(connection, caller.account_id, dataset_id)
            rename_dataset(connection, dataset_id, request["name"])
            return self._tell(connection, caller, dataset_id)

        sha256 = payload_sha256({"dataset_id": dataset_id, **request})
        return await self._run(caller, "PATCH /v1/datasets/{dataset}", key, sha256, work)

    async def restore(
        self, caller: Caller, dataset_id: str, payload: bytes, key: str | None
    ) -> Reply:
        """Take a dataset out of the archive; a ``Dataset``, unchanged when it is not in there.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When a field cannot be used.
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is no such dataset.
        """
        request: dict[str, Any] = {}
        if payload.strip():
            request = await read_body(functools.partial(_read, shape=RestoreDataset), payload)

        def work(connection: Connection) -> bytes:
            require_dataset(connection, caller.account_id, dataset_id)
            set_dataset_archived(connection, dataset_id, None)
            return self._tell(connection, caller, dataset_id)

        sha256 = payload_sha256({"dataset_id": dataset_id, **request})
        return await self._run(caller, "POST /v1/datasets/{dataset}/restore", key, sha256, work)

    async def delete(self, caller: Caller, dataset_id: str, key: str | None) -> Reply:
        """Delete a dataset with all of its rows, for good; a ``DeletedDataset``.

        Raises
        ------
        steelyard.errors.VersionInUseError
            While work reads it.
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is no such dataset.
        """

        def work(connection: Connection) -> bytes:
            require_dataset(connection, caller.account_id, dataset_id)
            for check in self._readers:
                reader = check(connection, dataset_id)
                if reader is not None:
                    raise VersionInUseError(
                        f"The dataset {dataset_id} is read by {reader}; wait for its end or cancel "
                        "it."
                    )
            erase_dataset(connection, dataset_id, self._now())
            return msgspec.json.encode(DeletedDataset(id=dataset_id))

        sha256 = payload_sha256({"dataset_id": dataset_id})
        reply = await self._run(caller, "DELETE /v1/datasets/{dataset}", key, sha256, work)
        if not reply.is_replay:
            await asyncio.to_thread(self._sweep_now)
        return reply

    async def dataset_at(
        self,
        caller: Caller,
        dataset_id: str,
        version: int | None = None,
        *,
        is_new_work: bool = True,
    ) -> DatasetAt:
        """Give a version of a dataset, to be read.

        Parameters
        ----------
        caller : Caller
            Whose it must be.
        dataset_id : str
            Which.
        version : int, optional
            The latest when left out.
        is_new_work : bool, default True
            Whether work is to start on it, which an archived one does not take.

        Raises
        ------
        steelyard.errors.NotFoundError
            When there is no such dataset or version.
        steelyard.errors.DatasetDeletedError, steelyard.errors.DatasetArchivedError
            When it was deleted; when it is archived and work is to start.
        """
        row, found = await self._state.read(
            functools.partial(
                self._find,
                account_id=caller.account_id,
                dataset_id=dataset_id,
                version=version,
                is_new_work=is_new_work,
            )
        )
        return DatasetAt(row.id, row.name, found.manifest)

    def side_rows(self, at: DatasetAt, side: Side, start: int = 0) -> Iterator[LabelledRow]:
        """Give the rows of a side in the order of the dataset, a group in memory at a time.

        Parameters
        ----------
        at : DatasetAt
            The version.
        side : {"training", "evaluation"}
            Which side.
        start : int, default 0
            How many of them to pass over.

        Raises
        ------
        steelyard.errors.StorageUnavailableError
            When a file cannot be read.
        """
        return read_side(self._rows, at, side, start)

    def evaluation_rows(self, at: DatasetAt) -> Iterator[LabelledRow]:
        """Give the evaluation rows in the order of the dataset; as ``side_rows``."""
        return self.side_rows(at, "evaluation")

    def sweep(self) -> list[str]:
        """Remove the files that no version needs; it blocks. Give their names.

        Raises
        ------
        steelyard.errors.StorageUnavailableError
            When the state or the store cannot be used.
        """
        return sweep_owned(self._state, self._store, live_files, older_than_s=ERASE_AFTER_S)

    def _sweep_now(self) -> None:
        try:
            self.sweep()
        except SteelyardError as error:
            # The dataset is deleted all the same; the next sweep takes its files.
            _log.warning("Files of a deleted dataset could not be removed yet: %s", error.message)

    async def _run(
        self,
        caller: Caller,
        route: str,
        key: str | None,
        sha256: str,
        work: Callable[[Connection], bytes],
    ) -> Reply:
        return await self._writes.run(
            caller,
            route=route,
            key=key,
            payload_sha256=sha256,
            window_s=SECONDS_A_DAY,
            work=work,
        )

    @staticmethod
    def _find(
        connection: Connection,
        *,
        account_id: str,
        dataset_id: str,
        version: int | None = None,
        is_new_work: bool = False,
    ) -> tuple[DatasetRow, VersionRow]:
        row = require_dataset(connection, account_id, dataset_id, is_new_work=is_new_work)
        return row, require_version(connection, row, version)

    def _tell(self, connection: Connection, caller: Caller, dataset_id: str) -> bytes:
        row, found = self._find(connection, account_id=caller.account_id, dataset_id=dataset_id)
        return msgspec.json.encode(row.tell(found.manifest))


def _require_growing(
    connection: Connection, caller: Caller, dataset_id: str, sent: SentRows
) -> DatasetRow:
    """Give a dataset to which rows may be added; a family that they name must grow on no other."""
    row = require_dataset(connection, caller.account_id, dataset_id, is_new_work=True)
    family = sent.request.family
    grown_on = family and dataset_of_family(connection, caller.account_id, family)
    if grown_on and grown_on != dataset_id:
        raise DatasetMismatchError(
            f"The family {show(family)} grows on the dataset {grown_on}; add the rows to that, or "
            "name no family."
        )
    return row


def _answer(connection: Connection, dataset: Dataset, made: MadeRows | None) -> bytes:
    if made is not None and made.also is not None:
        made.also(connection, dataset)
    return msgspec.json.encode(dataset if made is None else made.tell(dataset))


def _version_of(manifest: Manifest, sent: SentRows, at: float) -> VersionRow:
    return VersionRow(
        dataset_id=manifest.dataset_id,
        version=manifest.version,
        created_at=at,
        added_via=sent.added_via,
        added_from=sent.request.family,
        manifest=manifest,
    )


def _read(payload: bytes, shape: type[msgspec.Struct]) -> dict[str, Any]:
    found = Violations()
    fields = open_payload(payload, shape, found)
    check_fields(fields, found)
    found.raise_if_any()
    return fields
