"""The rows of datasets, read: pages, downloads, searches, differences, likeness, exports."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.filters import Facets
from steelyard.datasets.frames.differences import compare_versions
from steelyard.datasets.frames.exports import export_table
from steelyard.datasets.frames.pages import RowStore, StoredRow
from steelyard.datasets.frames.vectors import (
    MAX_COMPARED,
    Embed,
    Vectors,
    nearest_rows,
    scorer_of,
)
from steelyard.datasets.row_vectors import RowVectors
from steelyard.datasets.searches import (
    FoundRows,
    FoundSimilar,
    SearchRows,
    SimilarRow,
    SimilarRows,
    VersionDiff,
)
from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt
from steelyard.datasets.wire import (
    DiffQuery,
    Example,
    ExportQuery,
    Partition,
    RowPage,
    RowsQuery,
    VersionQuery,
)
from steelyard.decisions.rendering import render_context
from steelyard.exports import export_pieces
from steelyard.storage.frame_store import FrameStore

#: Times that vectors are looked for, and made when they are not there.
_TRIES = 3


class _NoVectorsError(Exception):
    """Rows have no vectors yet."""


class DatasetRows:
    """Reads the rows of datasets."""

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
        self._scorer = scorer_of(scorer)
        self._vectors = RowVectors(store, self._scorer)

    async def page(self, caller: Caller, dataset_id: str, query: RowsQuery) -> RowPage:
        """Return a page of rows."""
        at = await self._datasets.labelled_at(caller, dataset_id, query.version)
        rows = await asyncio.to_thread(
            self._rows.page,
            at.manifest,
            partition=query.partition,
            offset=query.offset,
            limit=query.limit,
        )
        total = at.manifest.rows_of(query.partition)
        return RowPage(
            data=_examples(rows),
            total=total,
            offset=query.offset,
            limit=query.limit,
            has_more=query.offset + len(rows) < total and bool(rows),
            version=at.version,
        )

    async def download(
        self, caller: Caller, dataset_id: str, partition: Partition, version: int | None
    ) -> Iterator[bytes]:
        """Return every row as JSON Lines, in pieces that are read as they are asked for."""
        at = await self._datasets.labelled_at(caller, dataset_id, version)
        return self._rows.download(at.manifest, partition)

    async def export(self, caller: Caller, dataset_id: str, query: ExportQuery) -> Iterator[bytes]:
        """Return the rows in a format, in pieces that are made as they are asked for."""
        at = await self._datasets.labelled_at(caller, dataset_id, query.version)
        table = await asyncio.to_thread(
            export_table, self._store, at.manifest, at.name, query.partition
        )
        return export_pieces(table, query.format)

    async def search(self, caller: Caller, dataset_id: str, search: SearchRows) -> FoundRows:
        """Return a page of the rows that a search finds."""
        at = await self._datasets.labelled_at(caller, dataset_id, search.version)
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
        return FoundRows(
            data=_examples(rows),
            indexes=[row.index for row in rows],
            total=total,
            offset=search.offset,
            limit=search.limit,
            has_more=search.offset + len(rows) < total and bool(rows),
            version=at.version,
            facets=facets,
        )

    async def facets(self, caller: Caller, dataset_id: str, query: VersionQuery) -> Facets:
        """Count how rows spread over sides and expected outcomes."""
        at = await self._datasets.labelled_at(caller, dataset_id, query.version)
        return await asyncio.to_thread(self._rows.facets, at.manifest, partition=query.partition)

    async def diff(self, caller: Caller, dataset_id: str, query: DiffQuery) -> VersionDiff:
        """Return the differences of a version from an older one."""
        newer = await self._datasets.labelled_at(caller, dataset_id, query.to)
        from_ = max(1, newer.version - 1) if query.from_ is None else query.from_
        if from_ > newer.version:
            message = f"from is {from_}, and to is {newer.version}; give the older one as from."
            raise errors.InvalidRequestError.at(("query", "from"), message, "empty_range")
        older = await self._datasets.labelled_at(caller, dataset_id, from_)
        return await asyncio.to_thread(
            compare_versions, self._store, older.manifest, newer.manifest
        )

    async def similar(self, caller: Caller, dataset_id: str, request: SimilarRows) -> FoundSimilar:
        """Return the rows most like one, or like a context."""
        at = await self._datasets.labelled_at(caller, dataset_id, request.version)
        if self._embed is None:
            raise errors.EngineUnavailableError(
                "This server's engine gives no vectors of texts, so rows cannot be compared; run "
                "the shipped model."
            )
        n_rows = at.manifest.rows_of(request.partition)
        if n_rows > MAX_COMPARED:
            raise errors.TooManyRowsError(
                f"{n_rows} rows would be compared, and {MAX_COMPARED} is the most; name a smaller "
                "partition, or search by words."
            )
        target = await asyncio.to_thread(self._vector_of, at, request, self._embed)
        for _ in range(_TRIES):
            try:
                return await asyncio.to_thread(self._similar, at, request, target)
            except _NoVectorsError:
                await self._vectors.make(at.manifest.parts_of(request.partition), self._embed)
        raise errors.StorageUnavailableError(
            "Vectors of the rows went as often as they were made; ask again."
        )

    def close(self) -> None:
        """Stop the work behind requests."""
        self._vectors.close()

    def _vector_of(self, at: DatasetAt, request: SimilarRows, embed: Embed) -> Vectors:
        """Return the vector that rows are to be like."""
        context: Any = request.context
        if request.row is not None:
            rows = self._rows.rows_at(at.manifest, [request.row])
            if not rows:
                raise errors.NotFoundError(
                    f"Version {at.version} of the dataset has no row of index {request.row}; it has "
                    f"{at.manifest.rows}."
                )
            context = msgspec.json.decode(rows[0].json)["context"]
        return np.asarray(embed([render_context(context)])[0], dtype=np.float32)

    def _similar(self, at: DatasetAt, request: SimilarRows, target: Vectors) -> FoundSimilar:
        nearest = nearest_rows(
            self._store,
            at.manifest,
            target,
            _refuse,
            scorer=self._scorer,
            partition=request.partition,
            limit=request.limit,
            without=request.row,
        )
        rows = self._rows.rows_at(at.manifest, [index for index, _ in nearest])
        likeness = dict(nearest)
        return FoundSimilar(
            data=[
                SimilarRow(index=row.index, similarity=likeness[row.index], row=example)
                for row, example in zip(rows, _examples(rows), strict=True)
            ],
            version=at.version,
        )


def _examples(rows: Sequence[StoredRow]) -> list[Example]:
    """Return rows for an answer; they are JSON already, and are encoded as they are."""
    return cast("list[Example]", [Raw(row.json) for row in rows])


def _refuse(_: Sequence[str]) -> Vectors:
    """Embed nothing: rows are embedded on a thread that requests do not wait for."""
    raise _NoVectorsError
