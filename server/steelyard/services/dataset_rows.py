"""The rows of datasets, read: pages, downloads, searches, differences, likeness, exports."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

from steelyard.datasets.canonical import compact_json
from steelyard.datasets.filters import Facets
from steelyard.datasets.searches import SimilarRows, VersionDiff, read_search, read_similar
from steelyard.errors import (
    EngineUnavailableError,
    InvalidRequestError,
    NotFoundError,
    StorageUnavailableError,
    TooManyRowsError,
    Violation,
)
from steelyard.services.caller import Caller
from steelyard.services.dataset_versions import DatasetAt
from steelyard.services.datasets import DatasetService
from steelyard.services.row_vectors import RowVectors
from steelyard.services.suspects import MAX_COMPARED
from steelyard.storage.frames.differences import compare_versions
from steelyard.storage.frames.exports import export_parquet
from steelyard.storage.frames.pages import RowStore, StoredRow
from steelyard.storage.frames.store import FrameStore
from steelyard.storage.frames.vectors import Embed, Vectors, nearest_rows
from steelyard.wire.dataset_queries import DiffQuery, RowsQuery
from steelyard.wire.datasets import Partition

#: Bytes of a piece of a download, so that a thread's turn is worth it.
_PIECE_BYTES = 256 * 1024
#: Times that vectors are looked for, and made when they are not there.
_TRIES = 3


class _NoVectorsError(Exception):
    """Rows have no vectors yet."""


class DatasetRows:
    """Reads the rows of datasets.

    Parameters
    ----------
    datasets : DatasetService
        Knows whose datasets there are.
    store : FrameStore
        Holds their rows.
    embed : callable, optional
        Gives unit vectors of texts; left out where the engine has none.
    scorer : str
        Names what embeds.
    """

    def __init__(
        self,
        datasets: DatasetService,
        store: FrameStore,
        *,
        embed: Embed | None = None,
        scorer: str = "",
    ) -> None:
        self._datasets = datasets
        self._store = store
        self._rows = RowStore(store)
        self._embed = embed
        self._scorer = hashlib.sha256(scorer.encode()).hexdigest()[:16]
        self._vectors = RowVectors(store, self._scorer)

    async def page(self, caller: Caller, dataset_id: str, query: RowsQuery) -> bytes:
        """Give a page of rows: a ``RowPage``, encoded.

        Raises
        ------
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is no such dataset or version.
        """
        at = await self._at(caller, dataset_id, query.version)
        rows = await asyncio.to_thread(
            self._rows.page,
            at.manifest,
            partition=query.partition,
            offset=query.offset,
            limit=query.limit,
        )
        total = at.manifest.rows_of(query.partition)
        page = _Page(
            data=[Raw(row.json) for row in rows],
            total=total,
            offset=query.offset,
            limit=query.limit,
            has_more=query.offset + len(rows) < total and bool(rows),
            version=at.version,
        )
        return msgspec.json.encode(page)

    async def download(
        self, caller: Caller, dataset_id: str, partition: Partition, version: int | None
    ) -> Iterator[bytes]:
        """Give every row as JSON Lines, in pieces that are read as they are asked for.

        Raises
        ------
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is no such dataset or version.
        """
        at = await self._at(caller, dataset_id, version)
        return _in_pieces(self._rows.download(at.manifest, partition))

    async def export(
        self, caller: Caller, dataset_id: str, partition: Partition, version: int | None
    ) -> Iterator[bytes]:
        """Give the rows as a Parquet file, in pieces; raises as ``download`` does."""
        at = await self._at(caller, dataset_id, version)
        return export_parquet(self._store, at.manifest, partition)

    async def search(self, caller: Caller, dataset_id: str, payload: bytes) -> bytes:
        """Give a page of the rows that a search finds: ``FoundRows``, encoded.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            With everything wrong in the search.
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is no such dataset or version.
        """
        search = await asyncio.to_thread(read_search, payload)
        at = await self._at(caller, dataset_id, search.version)
        total, rows = await asyncio.to_thread(
            self._rows.find,
            at.manifest,
            where=search.filter,
            order=search.order,
            partition=search.partition,
            offset=search.offset,
            limit=search.limit,
        )
        facets: Facets | UnsetType = UNSET
        if search.facets:
            facets = await asyncio.to_thread(
                self._rows.facets, at.manifest, where=search.filter, partition=search.partition
            )
        page = _Found(
            data=[Raw(row.json) for row in rows],
            indexes=[row.index for row in rows],
            total=total,
            offset=search.offset,
            limit=search.limit,
            has_more=search.offset + len(rows) < total and bool(rows),
            version=at.version,
            facets=facets,
        )
        return msgspec.json.encode(page)

    async def facets(
        self, caller: Caller, dataset_id: str, partition: Partition, version: int | None
    ) -> Facets:
        """Count how rows spread over sides and expected outcomes; raises as ``page`` does."""
        at = await self._at(caller, dataset_id, version)
        return await asyncio.to_thread(self._rows.facets, at.manifest, partition=partition)

    async def diff(self, caller: Caller, dataset_id: str, query: DiffQuery) -> VersionDiff:
        """Say what a version has that an older one has not.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When the one is not older than the other.
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is no such dataset or version.
        """
        newer = await self._at(caller, dataset_id, query.to)
        from_ = max(1, newer.version - 1) if query.from_ is None else query.from_
        if from_ > newer.version:
            message = f"from is {from_}, and to is {newer.version}; give the older one as from."
            raise InvalidRequestError(
                violations=[Violation(("query", "from"), message, "empty_range")]
            )
        older = await self._at(caller, dataset_id, from_)
        return await asyncio.to_thread(
            compare_versions, self._store, older.manifest, newer.manifest
        )

    async def similar(self, caller: Caller, dataset_id: str, payload: bytes) -> bytes:
        """Give the rows most like one, or like a context: ``FoundSimilar``, encoded.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When a field cannot be used.
        steelyard.errors.EngineUnavailableError
            Where the engine gives no vectors of texts.
        steelyard.errors.NotFoundError, steelyard.errors.DatasetDeletedError
            When there is no such dataset, version or row.
        steelyard.errors.TooManyRowsError
            When there are more rows than are compared.
        steelyard.errors.StorageUnavailableError
            When the rows' vectors cannot be read or kept.
        """
        asked = await asyncio.to_thread(read_similar, payload)
        at = await self._at(caller, dataset_id, asked.version)
        if self._embed is None:
            raise EngineUnavailableError(
                "This server's engine gives no vectors of texts, so rows cannot be compared; run "
                "the shipped model."
            )
        n_rows = at.manifest.rows_of(asked.partition)
        if n_rows > MAX_COMPARED:
            raise TooManyRowsError(
                f"{n_rows} rows would be compared, and {MAX_COMPARED} is the most; name a smaller "
                "partition, or search by words."
            )
        wanted = await asyncio.to_thread(self._vector_of, at, asked, self._embed)
        for _ in range(_TRIES):
            try:
                return await asyncio.to_thread(self._similar, at, asked, wanted)
            except _NoVectorsError:
                await self._vectors.make(at.manifest.parts_of(asked.partition), self._embed)
        raise StorageUnavailableError(
            "Vectors of the rows went as often as they were made; ask again."
        )

    def close(self) -> None:
        """End what runs behind requests."""
        self._vectors.close()

    def _vector_of(self, at: DatasetAt, asked: SimilarRows, embed: Embed) -> Vectors:
        """Give the vector that rows are to be like."""
        context: Any = asked.context
        if asked.row is not None:
            rows = self._rows.rows_at(at.manifest, [asked.row])
            if not rows:
                raise NotFoundError(
                    f"Version {at.version} of the dataset has no row of index {asked.row}; it has "
                    f"{at.manifest.rows}."
                )
            context = msgspec.json.decode(rows[0].json)["context"]
        return np.asarray(embed([_text_of(context)])[0], dtype=np.float32)

    def _similar(self, at: DatasetAt, asked: SimilarRows, wanted: Vectors) -> bytes:
        nearest = nearest_rows(
            self._store,
            at.manifest,
            wanted,
            _refuse,
            scorer=self._scorer,
            partition=asked.partition,
            limit=asked.limit,
            without=asked.row,
        )
        found = self._rows.rows_at(at.manifest, [index for index, _ in nearest])
        return msgspec.json.encode(_Similar(data=_join(found, nearest), version=at.version))

    async def _at(self, caller: Caller, dataset_id: str, version: int | None) -> DatasetAt:
        return await self._datasets.dataset_at(caller, dataset_id, version, is_new_work=False)


class _Page(msgspec.Struct, kw_only=True):
    """A ``RowPage`` whose rows are JSON already."""

    data: list[Raw]
    total: int
    offset: int
    limit: int
    has_more: bool
    version: int


class _Found(_Page, kw_only=True):
    """``FoundRows`` whose rows are JSON already."""

    indexes: list[int]
    facets: Facets | UnsetType


class _Likeness(msgspec.Struct, kw_only=True):
    index: int
    similarity: float
    row: Raw


class _Similar(msgspec.Struct, kw_only=True):
    """``FoundSimilar`` whose rows are JSON already."""

    data: list[_Likeness]
    version: int


def _join(rows: Sequence[StoredRow], nearest: Sequence[tuple[int, float]]) -> list[_Likeness]:
    likeness = dict(nearest)
    return [
        _Likeness(index=row.index, similarity=likeness[row.index], row=Raw(row.json))
        for row in rows
    ]


def _refuse(_: Sequence[str]) -> Vectors:
    """Embed nothing: rows are embedded on a thread that requests do not wait for."""
    raise _NoVectorsError


def _text_of(context: Any) -> str:
    """Give a context as the column of stored rows has it."""
    return context if isinstance(context, str) else compact_json(context)


def _in_pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    n_held = 0
    for chunk in chunks:
        held.append(chunk)
        n_held += len(chunk)
        if n_held >= _PIECE_BYTES:
            yield b"".join(held)
            held, n_held = [], 0
    if held:
        yield b"".join(held)
