"""``client.datasets``: rows from files, lists and frames sent in pieces, and read as frames."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.client import dataset_calls as calls
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method
from steelyard.client.row_sources import FrameColumns, OnRefused, Progress, Rows, pieces_of
from steelyard.client.saving import format_of
from steelyard.client.uploads import RowUpload, parts_of
from steelyard.client.walking import DatasetWalk
from steelyard.datasets.wire import Dataset, DatasetCheck, Partition
from steelyard.wire.queries import ExportFormat

if TYPE_CHECKING:
    import polars as pl


class AsyncDatasets(AsyncResource):
    """The datasets of a client's account: ``client.datasets``."""

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
    search = _method(calls.search_rows)
    similar = _method(calls.similar_rows)
    facets = _method(calls.facets_of)
    diff = _method(calls.diff_versions)

    async def create(
        self,
        name: str,
        examples: Rows | Mapping[str, Rows] | None = None,
        *,
        training: Rows | None = None,
        evaluation: Rows | None = None,
        evaluation_fraction: float | None = None,
        context: str | Sequence[str] = "context",
        decisions: Sequence[Mapping[str, Any]] | None = None,
        labels: Mapping[str, str] | Sequence[str] | None = None,
        targets: str | None = None,
        rewards: str | None = None,
        progress: Progress | None = None,
        on_refused: OnRefused | None = None,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Make a dataset of files, lists of rows, or Polars or pandas frames of any size.

        Parameters
        ----------
        examples : path, bytes, iterable of mapping, frame, or mapping, optional
            Rows whose sides the server picks. A path and bytes hold JSON Lines. A mapping has parts
            by name, as ``{"training": rows, "evaluation": rows}``.
        training, evaluation : as examples, optional
            Rows of one side; instead of ``examples``.
        evaluation_fraction : float, optional
            Share of the contexts of ``examples`` put aside: 0.1 to 1; 0.2 when left out.
        context : str or sequence of str, default "context"
            Of a frame: the column with the context; several make an object.
        decisions : sequence of mapping, optional
            Of a frame: what every row asks; left out, a column ``decisions`` says it row by row.
        labels : mapping or sequence of str, optional
            Of a frame: decision id to the column with the right outcome's name; the ids of
            ``decisions`` when left out. A row does not ask a decision whose cell is null.
        targets, rewards : str, optional
            Of a frame: a column with, by decision id, numbers by outcome (mappings, their JSON, or
            the lists of ``to_polars``); instead of ``labels``.
        progress : callable, optional
            Called with the bytes sent so far.
        on_refused : callable, optional
            Called with the part, the line from 0 and the problem of each row that the server refuses:
            such rows are left out and the others stored. Without it one of them refuses all.

        Returns
        -------
        Dataset
            The dataset. Over 15 MiB rows are sent in pieces, each a version of its own. The first
            says what a dataset asks: a decision that only a later piece asks is
            ``task_mismatch``, so put a row that asks it among the first.

        Raises
        ------
        steelyard.errors.SteelyardError
            What the server refused with; ``details`` has the first hundred problems. Where earlier
            pieces were stored, a note (``__notes__``) names the dataset that has them.
        ValueError
            When a frame lacks a column, or there is nothing to send.

        Examples
        --------
        >>> client.datasets.create("tickets", "support_triage.jsonl")  # doctest: +SKIP
        """
        columns = FrameColumns(
            context=context, decisions=decisions, labels=labels, targets=targets, rewards=rewards
        )
        upload = RowUpload(
            parts_of(examples, training, evaluation),
            columns,
            evaluation_fraction,
            name=name,
            progress=progress,
            idempotency_key=idempotency_key,
            on_refused=on_refused,
        )
        return await self._upload(upload)

    async def add_rows(
        self,
        dataset_id: str,
        examples: Rows | Mapping[str, Rows] | None = None,
        *,
        training: Rows | None = None,
        evaluation: Rows | None = None,
        evaluation_fraction: float | None = None,
        context: str | Sequence[str] = "context",
        decisions: Sequence[Mapping[str, Any]] | None = None,
        labels: Mapping[str, str] | Sequence[str] | None = None,
        targets: str | None = None,
        rewards: str | None = None,
        progress: Progress | None = None,
        on_refused: OnRefused | None = None,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Add rows to a dataset as its next version; everything else is as for ``create``.

        ``evaluation_fraction`` is of the contexts that are new.
        """
        columns = FrameColumns(
            context=context, decisions=decisions, labels=labels, targets=targets, rewards=rewards
        )
        upload = RowUpload(
            parts_of(examples, training, evaluation),
            columns,
            evaluation_fraction,
            dataset_id=dataset_id,
            progress=progress,
            idempotency_key=idempotency_key,
            on_refused=on_refused,
        )
        return await self._upload(upload)

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
        """Return what is wrong with rows, as ``create`` would find it, and store nothing.

        The first 15 MiB are looked at.
        """
        columns = FrameColumns(
            context=context, decisions=decisions, labels=labels, targets=targets, rewards=rewards
        )
        piece = next(pieces_of(examples, columns))
        return await self.send(calls.check_rows({"examples": piece.data}))

    async def iterate(
        self, *, archived: bool = False, page_size: int = 200
    ) -> AsyncIterator[Dataset]:
        """Iterate over datasets, most recently used first; pages are asked for as needed.

        Each comes once, also where the loop uses, adds to or makes datasets; what it makes does not
        come.
        """
        walk = DatasetWalk()
        while not walk.is_over:
            page = await self.send(
                calls.list_datasets(archived=archived, limit=page_size, cursor=walk.cursor)
            )
            for one in walk.take(page):
                yield one

    async def export_to(
        self,
        dataset_id: str,
        path: str | Path,
        *,
        format: ExportFormat | None = None,  # noqa: A002
        partition: Partition = "all",
        version: int | None = None,
        force: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Write a version's rows to a file, or to a folder that Hugging Face ``datasets`` loads.

        Parameters
        ----------
        path : path
            A file, or a folder where the format is ``hf`` and the path does not end with ``.zip``.
        format : {"csv", "parquet", "hf"}, optional
            That of the path's ending when left out; a path without one of them is a folder.
        force : bool, default False
            Whether to replace what is there.
        progress : callable, optional
            Called with the bytes received so far.

        Examples
        --------
        >>> client.datasets.export_to("ds_…", "tickets", format="hf")  # doctest: +SKIP
        """
        path = Path(path)
        format_ = format_of(path, format)
        call = calls.export_rows(dataset_id, format=format_, partition=partition, version=version)
        return await self._client.save(call, path, format_, force=force, progress=progress)

    async def to_polars(
        self, dataset_id: str, *, partition: Partition = "all", version: int | None = None
    ) -> pl.DataFrame:
        """Return every row of a version as a Polars frame.

        Returns
        -------
        polars.DataFrame
            ``index``, ``side``, ``context``, ``decisions`` (JSON), ``targets`` or ``rewards`` (a
            list of decision, outcome and value), hashes, what was sent beside, and by the id of
            each decision the expected outcome.
        """
        import polars as pl  # noqa: PLC0415  a client without frames needs none

        data = await self.send(calls.export_rows(dataset_id, partition=partition, version=version))
        return pl.read_parquet(io.BytesIO(data))
