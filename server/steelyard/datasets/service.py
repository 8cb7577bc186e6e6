"""The datasets of an account: made, listed, renamed, restored and deleted, and given to other work.

A version's files are durable before the state names them, and the state forgets them before they
are removed, so that a listed dataset has all of its rows, whenever a process dies.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from sqlalchemy import Connection

from steelyard import errors
from steelyard.accounts.store_owner import sweep_owned
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset, require_version
from steelyard.datasets.definitions import Definition, readiness_of
from steelyard.datasets.doubts import Doubt, labels_to_check
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.scanning import load_definitions, load_metadata
from steelyard.datasets.ingesting import (
    Answer,
    MadeRows,
    RowBounds,
    SentRows,
    check_rows,
    write_version,
)
from steelyard.datasets.parsing import parse
from steelyard.datasets.store import (
    DatasetRow,
    VersionRow,
    advance_dataset,
    erase_dataset,
    insert_dataset,
    insert_version,
    live_files,
    page_datasets,
    rename_dataset,
    set_dataset_archived,
    versions_of,
)
from steelyard.datasets.version_service import DatasetAt, LabelledRow, read_side
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import (
    Dataset,
    DatasetCheck,
    DatasetPage,
    DatasetsQuery,
    DatasetVersions,
    DeletedDataset,
    LabelsToCheck,
    LabelToCheck,
    RenameDataset,
    Side,
)
from steelyard.ids import new_id
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.violations import BODY, show

_log = logging.getLogger(__name__)

#: Files that no version needs are left alone for this long, in seconds: a version that has the same
#: rows may be on its way. No write takes as long.
ERASE_AFTER_S = 3600.0

#: How often rows are placed behind those of other processes before their sender is refused.
_MOST_TRIES = 50

#: Names in the deleting transaction a reader of the dataset, as ``an evaluation``; ``None`` when
#: nothing of its kind does.
ReaderCheck = Callable[[Connection, str], str | None]
#: Erases in the deleting transaction the data of a room above about a dataset's rows.
Eraser = Callable[[Connection, str], None]
#: Returns the dataset that a family of an account grows on; ``None`` when there is no such family.
GrownOn = Callable[[Connection, str, str], str | None]


class DatasetService:
    """The datasets of every account."""

    def __init__(
        self,
        state: State,
        store: FrameStore,
        writes: KeyedWrites,
        *,
        bounds: RowBounds,
    ) -> None:
        self._state = state
        self._store = store
        self._rows = RowStore(store)
        self._writes = writes
        self._bounds = bounds
        self._readers: list[ReaderCheck] = []
        self._find_doubts: Callable[[Connection, str], list[Doubt]] = lambda *_: []
        self._erasers: list[Eraser] = []
        self._check_apart: Callable[[Caller, str], Awaitable[None]] | None = None
        self._grown_on: GrownOn = _grows_nowhere
        #: Whose turn it is to append to a dataset, in each event loop.
        self._turns: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock]
        self._turns = WeakValueDictionary()

    def register_reader(self, check: ReaderCheck, erase: Eraser | None = None) -> None:
        """Register a check for work that reads a dataset, and the erasure of its data."""
        self._readers.append(check)
        if erase is not None:
            self._erasers.append(erase)

    def register_apart(self, check: Callable[[Caller, str], Awaitable[None]]) -> None:
        """Register who refuses a reviewer the labels of a dataset of which it labels rows apart."""
        self._check_apart = check

    def register_families(self, grown_on: GrownOn) -> None:
        """Register who knows the dataset that a family grows on: its rows go to no other."""
        self._grown_on = grown_on

    def register_doubts(self, find: Callable[[Connection, str], list[Doubt]]) -> None:
        """Register who doubts labels of a dataset."""
        self._find_doubts = find

    def definitions(self, at: DatasetAt) -> list[Definition]:
        """Return every wording of the decisions of a version; it blocks."""
        return load_definitions(self._store, at.manifest)

    def evaluation_metadata(self, at: DatasetAt) -> list[dict[str, Any]]:
        """Return the metadata of evaluation rows, each once; it blocks."""
        return load_metadata(self._store, at.manifest, "evaluation")

    async def create(
        self, write: Write, sent: SentRows, made: MadeRows[Answer] | None = None
    ) -> Dataset | Answer:
        """Make a dataset of rows."""
        await self._writes.replay_known(write)
        dataset_id = new_id("ds")
        manifest = await parse(
            write.caller.account_id, write_version, self._store, dataset_id, sent, self._bounds
        )
        now = time.time()
        row = DatasetRow(
            id=dataset_id,
            account_id=write.caller.account_id,
            name=sent.request.name or "",
            version=1,
            created_at=now,
            used_at=sent.used_at,
            archived_at=None,
            deleted_at=None,
            receipt=sent.receipt,
            labeling=sent.labeling,
        )

        def work(connection: Connection) -> Dataset | Answer:
            insert_dataset(connection, row)
            insert_version(connection, _version_of(manifest, sent, now))
            dataset = row.to_wire(manifest)
            return dataset if made is None else made.answer(connection, dataset)

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    async def check(self, caller: Caller, sent: SentRows) -> DatasetCheck:
        """Return the rows a request would make, and their problems; nothing is stored."""
        return await parse(caller.account_id, check_rows, sent, self._bounds)

    async def add_rows(
        self, write: Write, dataset_id: str, sent: SentRows, made: MadeRows[Answer] | None = None
    ) -> Dataset | Answer:
        """Add rows to a dataset as its next version, after the appends that came before.

        One of another process may come between, too: the rows are then placed again behind its own.
        """
        await self._writes.replay_known(write)
        turn = self._turns.setdefault((asyncio.get_running_loop(), dataset_id), asyncio.Lock())
        expects_version = made is not None and made.previous is not None
        async with turn:
            for n_left in reversed(range(_MOST_TRIES)):
                try:
                    return await self._add_rows(write, dataset_id, sent, made)
                except errors.SteelyardError as error:
                    # An equal request may have added the rows meanwhile.
                    await self._writes.replay_known(write)
                    is_changed = isinstance(error, errors.DatasetChangedError)
                    if not is_changed or expects_version or not n_left:
                        raise
        raise AssertionError("The last try returns or raises.")

    async def _add_rows(
        self, write: Write, dataset_id: str, sent: SentRows, made: MadeRows[Answer] | None
    ) -> Dataset | Answer:
        caller = write.caller

        def latest(connection: Connection) -> Manifest:
            row = self._require_growing(connection, caller, dataset_id, sent)
            if made is not None and made.previous not in {None, row.version}:
                raise errors.DatasetChangedError(
                    f"The dataset got version {row.version} while the rows were made; nothing was "
                    "added. Send the request again."
                )
            return require_version(connection, row).manifest

        previous = await self._state.read(latest)
        manifest = await parse(
            caller.account_id, write_version, self._store, dataset_id, sent, self._bounds, previous
        )
        now = time.time()

        def work(connection: Connection) -> Dataset | Answer:
            row = self._require_growing(connection, caller, dataset_id, sent)
            if not advance_dataset(connection, dataset_id, previous=previous.version):
                raise errors.DatasetChangedError(
                    f"The dataset got version {row.version} while these rows were read; nothing "
                    "was added. Send them again."
                )
            insert_version(connection, _version_of(manifest, sent, now))
            dataset = row.to_wire(manifest)
            return dataset if made is None else made.answer(connection, dataset)

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    async def page(self, caller: Caller, query: DatasetsQuery) -> DatasetPage:
        """Return a page of the account's datasets, most recently used first."""
        rows, next_cursor = await self._state.read(
            lambda connection: page_datasets(
                connection,
                caller.account_id,
                archived=query.archived,
                limit=query.limit,
                cursor=query.cursor,
            )
        )
        return DatasetPage(
            data=[row.to_wire(manifest) for row, manifest in rows],
            has_more=next_cursor is not None,
            next_cursor=next_cursor,
        )

    async def get(self, caller: Caller, dataset_id: str) -> Dataset:
        """Return a dataset, with the decisions that prompt tuning can tune."""
        row, manifest = await self._read(caller, dataset_id)
        doubted = await self._doubted(DatasetAt(row.id, row.name, manifest))
        dataset = msgspec.structs.replace(
            row.to_wire(manifest), storage_window=None, labels_to_check=len(doubted)
        )
        if manifest.method != "sft":
            return dataset
        definitions = await asyncio.to_thread(load_definitions, self._store, manifest)
        return msgspec.structs.replace(dataset, prompt_tuning=readiness_of(definitions))

    async def versions(self, caller: Caller, dataset_id: str) -> DatasetVersions:
        """Return every version, newest first."""

        def work(connection: Connection) -> list[VersionRow]:
            require_dataset(connection, caller.account_id, dataset_id)
            return versions_of(connection, dataset_id)

        rows = await self._state.read(work)
        return DatasetVersions(
            data=[
                row.manifest.to_wire(row.created_at, row.added_via, row.added_from) for row in rows
            ]
        )

    async def labels_to_check(self, caller: Caller, dataset_id: str) -> LabelsToCheck:
        """Return the labels of the latest version that prompt tuning doubted."""
        at = await self.labelled_at(caller, dataset_id)
        return LabelsToCheck(data=await self._doubted(at))

    async def _doubted(self, at: DatasetAt) -> list[LabelToCheck]:
        doubts = await self._state.read(
            lambda connection: self._find_doubts(connection, at.dataset_id)
        )
        if not doubts:
            return []
        return await asyncio.to_thread(
            lambda: labels_to_check(self._rows.iterate(at.manifest, "training"), doubts)
        )

    async def rename(self, write: Write, dataset_id: str, request: RenameDataset) -> Dataset:
        """Rename a dataset."""
        return await self._change(write, dataset_id, rename_dataset, request.name)

    async def archive(self, write: Write, dataset_id: str) -> Dataset:
        """Put a dataset into the archive; unchanged when it is in there."""
        return await self._change(write, dataset_id, set_dataset_archived, time.time())

    async def restore(self, write: Write, dataset_id: str) -> Dataset:
        """Take a dataset out of the archive; unchanged when it is not in there."""
        return await self._change(write, dataset_id, set_dataset_archived, None)

    async def delete(self, write: Write, dataset_id: str) -> DeletedDataset:
        """Delete a dataset with all of its rows, for good."""

        def work(connection: Connection) -> DeletedDataset:
            require_dataset(connection, write.caller.account_id, dataset_id)
            for check in self._readers:
                reader = check(connection, dataset_id)
                if reader is not None:
                    raise errors.VersionInUseError(
                        f"The dataset {dataset_id} is read by {reader}; wait for its end or cancel "
                        "it."
                    )
            for erase in self._erasers:
                erase(connection, dataset_id)
            erase_dataset(connection, dataset_id, time.time())
            return DeletedDataset(id=dataset_id)

        deleted = await self._writes.once(write, work, window_s=SECONDS_A_DAY)
        await asyncio.to_thread(self._sweep_now)
        return deleted

    async def dataset_at(
        self,
        caller: Caller,
        dataset_id: str,
        version: int | None = None,
        *,
        is_new_work: bool = True,
    ) -> DatasetAt:
        """Return a version of a dataset, to be read."""
        row, manifest = await self._read(caller, dataset_id, version, is_new_work=is_new_work)
        return DatasetAt(row.id, row.name, manifest)

    async def labelled_at(
        self, caller: Caller, dataset_id: str, version: int | None = None
    ) -> DatasetAt:
        """Return a version whose labels the caller is to read, or refuse a reviewer who may not yet."""
        at = await self.dataset_at(caller, dataset_id, version, is_new_work=False)
        if caller.only_reviews and self._check_apart is not None:
            await self._check_apart(caller, dataset_id)
        return at

    def side_rows(self, at: DatasetAt, side: Side, start: int = 0) -> Iterator[LabelledRow]:
        """Return a side's rows from the place ``start`` on, in the dataset's order, a group in memory at a time."""
        return read_side(self._rows, at, side, start)

    def evaluation_rows(self, at: DatasetAt, start: int = 0) -> Iterator[LabelledRow]:
        """Return the evaluation rows in the order of the dataset; as ``side_rows``."""
        return self.side_rows(at, "evaluation", start)

    def sweep(self) -> list[str]:
        """Remove the files that no version needs; it blocks. Give their names."""
        return sweep_owned(self._state, self._store, live_files, older_than_s=ERASE_AFTER_S)

    def _sweep_now(self) -> None:
        try:
            self.sweep()
        except errors.SteelyardError as error:
            # The dataset is deleted all the same; the next sweep takes its files.
            _log.warning("Files of a deleted dataset could not be removed yet: %s", error.message)

    def _require_growing(
        self, connection: Connection, caller: Caller, dataset_id: str, sent: SentRows
    ) -> DatasetRow:
        """Return a dataset that may grow; a family that its rows name must grow on no other."""
        row = require_dataset(connection, caller.account_id, dataset_id, is_new_work=True)
        family = sent.request.family
        grown_on = family and self._grown_on(connection, caller.account_id, family)
        if grown_on and grown_on != dataset_id:
            raise errors.DatasetMismatchError(
                f"The family {show(family)} grows on the dataset {grown_on}; add the rows to that, "
                "or name no family.",
                path=(*BODY, "family"),
            )
        return row

    async def _read(
        self,
        caller: Caller,
        dataset_id: str,
        version: int | None = None,
        *,
        is_new_work: bool = False,
    ) -> tuple[DatasetRow, Manifest]:
        def work(connection: Connection) -> tuple[DatasetRow, Manifest]:
            row = require_dataset(
                connection, caller.account_id, dataset_id, is_new_work=is_new_work
            )
            return row, require_version(connection, row, version).manifest

        return await self._state.read(work)

    async def _change(
        self, write: Write, dataset_id: str, change: Callable[..., object], value: object
    ) -> Dataset:
        def work(connection: Connection) -> Dataset:
            account_id = write.caller.account_id
            require_dataset(connection, account_id, dataset_id)
            change(connection, dataset_id, value)
            row = require_dataset(connection, account_id, dataset_id)
            return row.to_wire(require_version(connection, row).manifest)

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)


def _grows_nowhere(connection: Connection, account_id: str, family: str) -> None:
    """Return no dataset: this server knows no families."""


def _version_of(manifest: Manifest, sent: SentRows, at: float) -> VersionRow:
    return VersionRow(
        dataset_id=manifest.dataset_id,
        version=manifest.version,
        created_at=at,
        added_via=sent.added_via,
        added_from=sent.request.family,
        manifest=manifest,
    )
