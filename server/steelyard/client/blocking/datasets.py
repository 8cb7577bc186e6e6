"""``client.datasets`` and ``client.maps``: rows sent in pieces, read as frames, laid out as points."""

# Made of asynchronous/datasets.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.client import dataset_calls as calls
from steelyard.client import export_calls, map_calls
from steelyard.client.blocking.resource import (
    JobResource,
    Resource,
    pages,
    saves,
    uploads,
)
from steelyard.client.calls import blocking_method as _method
from steelyard.client.frames import frame_of_parquet, write_map
from steelyard.client.row_sources import FrameColumns, Rows, pieces_of
from steelyard.client.saving import check_free, format_of
from steelyard.client.uploads import rows_to_add, rows_to_create
from steelyard.client.walking import DatasetWalk
from steelyard.datasets.wire import Dataset, DatasetCheck, Partition
from steelyard.maps.wire import MAP, DatasetMap
from steelyard.wire.queries import ExportFormat

if TYPE_CHECKING:
    import polars as pl


class Datasets(Resource):
    """The datasets of a client's account: ``client.datasets``."""

    create = uploads(rows_to_create)
    add_rows = uploads(rows_to_add)
    from_feedback = _method(calls.from_feedback)
    list = _method(calls.list_datasets)
    get = _method(calls.get_dataset)
    rename = _method(calls.rename_dataset)
    delete = _method(calls.delete_dataset)
    archive = _method(calls.archive_dataset)
    restore = _method(calls.restore_dataset)
    versions = _method(calls.list_versions)
    labels_to_check = _method(calls.list_labels_to_check)
    rows = _method(calls.page_rows)
    download = _method(calls.download_rows)
    export = _method(calls.export_rows)
    export_to = saves(export_calls.save_rows)
    search = _method(calls.search_rows)
    similar = _method(calls.similar_rows)
    facets = _method(calls.facets_of)
    diff = _method(calls.diff_versions)

    def preview(
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
        return self.send(calls.check_rows({"examples": piece.data}))

    def iterate(self, *, archived: bool = False, page_size: int = 200) -> Iterator[Dataset]:
        """Iterate over datasets, most recently used first; pages are asked for as needed.

        Each comes once, also where the loop uses, adds to or makes datasets; the new ones do not come.
        """
        walk = DatasetWalk()
        while not walk.is_over:
            page = self.send(
                calls.list_datasets(archived=archived, limit=page_size, cursor=walk.cursor)
            )
            yield from walk.take(page)

    def to_polars(
        self, dataset_id: str, *, partition: Partition = "all", version: int | None = None
    ) -> pl.DataFrame:
        """Return every row of a version as a Polars frame.

        Returns
        -------
        polars.DataFrame
            ``index``, ``side``, ``context``, ``decisions`` (JSON), ``targets`` or ``rewards`` (a list
            of decision, outcome and value), hashes, the fields sent beside, and by the id of each
            decision the expected outcome.
        """
        data = self.send(calls.export_rows(dataset_id, partition=partition, version=version))
        return frame_of_parquet(data)


class Maps(JobResource[DatasetMap]):
    """The rows of a dataset as points in a plane: ``client.maps``."""

    noun = MAP
    look = staticmethod(map_calls.get)
    list = pages(map_calls.page)
    create = _method(map_calls.create)
    get = _method(map_calls.get)
    points = _method(map_calls.points)
    values = _method(map_calls.values)
    cancel = _method(map_calls.cancel)

    def export_to(
        self,
        map_id: str,
        path: str | Path,
        *,
        decision: str | None = None,
        evaluation: str | None = None,
        format: ExportFormat | None = None,  # noqa: A002
        force: bool = False,
    ) -> Path:
        """Write a map's points to a file, or to a folder that Hugging Face ``datasets`` loads.

        Parameters
        ----------
        path : path
            A file, or a folder where the format is ``hf`` and the path does not end with ``.zip``.
        decision : str, optional
            Whose labels stand beside the points.
        evaluation : str, optional
            Id of an evaluation of the dataset, whose model's answers to the decision are there too.
        format : {"csv", "parquet", "hf"}, optional
            That of the path's ending when left out; a path without one of them is a folder.
        force : bool, default False
            Whether to replace an existing file.

        Raises
        ------
        ValueError
            When an evaluation is named without a decision.
        """
        if evaluation is not None and decision is None:
            raise ValueError("evaluation needs decision: name the decision that it answered.")
        path = Path(path)
        check_free(path, force=force)
        points = self.send(map_calls.points(map_id))
        values = None
        if decision is not None:
            values = self.send(map_calls.values(map_id, decision, evaluation=evaluation))
        return write_map(points, values, path, format_of(path, format), force=force)
