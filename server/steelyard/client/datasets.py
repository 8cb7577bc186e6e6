"""``client.datasets`` and ``client.maps``: rows sent in pieces, read as frames, laid out as points."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.client import dataset_calls as calls
from steelyard.client import export_calls, map_calls
from steelyard.client.methods import Mode, answers, iterates, method, pages, saves, uploads
from steelyard.client.resource import JobResource, Resource
from steelyard.client.row_sources import FrameColumns, Rows, pieces_of
from steelyard.client.saving import check_free, format_of
from steelyard.client.uploads import UploadCalls, rows_to_add, rows_to_create
from steelyard.client.walking import DatasetWalk
from steelyard.datasets.wire import Dataset, DatasetCheck, Partition
from steelyard.maps.wire import MAP, DatasetMap, MapPoints, MapValues
from steelyard.wire.queries import ExportFormat
from steelyard.wire.requirements import required_for

if TYPE_CHECKING:
    import polars as pl


class DatasetResource(Resource[Mode]):
    """The datasets of a client's account: ``client.datasets``."""

    create = uploads(rows_to_create)
    add_rows = uploads(rows_to_add)
    from_feedback = method(calls.from_feedback)
    list = method(calls.list_datasets)
    get = method(calls.get_dataset)
    rename = method(calls.rename_dataset)
    delete = method(calls.delete_dataset)
    archive = method(calls.archive_dataset)
    restore = method(calls.restore_dataset)
    versions = method(calls.list_versions)
    labels_to_check = method(calls.list_labels_to_check)
    rows = method(calls.page_rows)
    download = method(calls.download_rows)
    export = method(calls.export_rows)
    export_to = saves(export_calls.save_rows)
    search = method(calls.search_rows)
    similar = method(calls.similar_rows)
    facets = method(calls.facets_of)
    diff = method(calls.diff_versions)

    @answers
    async def send_rows(self, upload: UploadCalls[Dataset]) -> Dataset:
        """Send rows in as many calls as they need."""
        return await self.upload_rows(upload)

    @answers
    async def preview(
        self,
        examples: Rows,
        *,
        context: str | Sequence[str] = "context",
        decisions: Sequence[Mapping[str, Any]] | None = None,
        labels: Mapping[str, str] | Sequence[str] | None = None,
        targets: str | None = None,
        rewards: str | None = None,
    ) -> DatasetCheck:
        """Return the problems that ``create`` would find in rows, and store nothing.

        The first 15 MiB are looked at.
        """
        columns = FrameColumns(
            context=context, decisions=decisions, labels=labels, targets=targets, rewards=rewards
        )
        piece = next(pieces_of(examples, columns))
        return await self.answer_to(calls.check_rows({"examples": piece.data}))

    @iterates
    async def iterate(
        self, *, archived: bool = False, page_size: int = 200
    ) -> AsyncIterator[Dataset]:
        """Iterate over datasets, most recently used first; pages are asked for as needed.

        Each comes once, also where the loop uses, adds to or makes datasets; the new ones do not come.
        """
        walk = DatasetWalk()
        while not walk.is_over:
            page = await self.answer_to(
                calls.list_datasets(archived=archived, limit=page_size, cursor=walk.cursor)
            )
            for one in walk.take(page):
                yield one

    @answers
    async def to_polars(
        self, dataset_id: str, *, partition: Partition = "all", version: int | None = None
    ) -> pl.DataFrame:
        """Return every row of a version as a Polars frame.

        Its columns are ``index``, ``side``, ``context``, ``decisions`` (JSON), ``targets`` or
        ``rewards`` (a list of decision, outcome and value), hashes, the fields sent beside, and by
        the id of each decision the expected outcome.
        """
        data = await self.answer_to(
            calls.export_rows(dataset_id, partition=partition, version=version)
        )
        return frame_of_parquet(data)


class MapResource(JobResource[Mode, DatasetMap]):
    """The rows of a dataset as points in a plane: ``client.maps``."""

    noun = MAP
    look = staticmethod(map_calls.get)
    list = pages(map_calls.page)
    create = method(map_calls.create)
    get = method(map_calls.get)
    points = method(map_calls.points)
    values = method(map_calls.values)
    cancel = method(map_calls.cancel)

    @answers
    async def export_to(
        self,
        map_id: str,
        path: str | Path,
        *,
        decision: str | None = None,
        evaluation: str | None = None,
        format: ExportFormat | None = None,  # noqa: A002
        force: bool = False,
    ) -> Path:
        """Write a map's points to a file, or to a folder, as ``datasets.export_to`` writes rows.

        The labels of ``decision`` stand beside the points, and the answers of the model of
        ``evaluation`` of the dataset; raise ``ValueError`` when an evaluation is named without a
        decision.
        """
        if evaluation is not None and decision is None:
            raise ValueError("evaluation needs decision: name the decision that it answered.")
        path = Path(path)
        check_free(path, force=force)
        points = await self.answer_to(map_calls.points(map_id))
        values = None
        if decision is not None:
            values = await self.answer_to(map_calls.values(map_id, decision, evaluation=evaluation))
        return write_map(points, values, path, format_of(path, format), force=force)


def frame_of_parquet(data: bytes) -> pl.DataFrame:
    """Return a Parquet file as a frame."""
    with required_for("A frame"):
        import polars as pl  # noqa: PLC0415

        return pl.read_parquet(io.BytesIO(data))


def write_map(
    points: MapPoints, values: MapValues | None, path: Path, format_: ExportFormat, *, force: bool
) -> Path:
    """Write a map's points and their values to a file; return its path."""
    with required_for("A map's table"):
        from steelyard.client.map_table import write_points  # noqa: PLC0415

    return write_points(points, values, path, format_, force=force)
