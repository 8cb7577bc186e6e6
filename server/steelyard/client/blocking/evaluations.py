"""``client.evaluations``: models scored on the evaluation rows of datasets."""

# Made of asynchronous/evaluations.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Unpack

from steelyard.client import evaluation_calls as calls
from steelyard.client.answers import RecordList
from steelyard.client.blocking.resource import JobResource
from steelyard.client.calls import blocking_method as _method
from steelyard.client.evaluation_calls import RecordFilters
from steelyard.client.row_sources import Progress
from steelyard.client.saving import format_of
from steelyard.client.waiting import EVALUATIONS
from steelyard.evaluations.wire import Evaluation
from steelyard.wire.queries import ExportFormat


class Evaluations(JobResource[Evaluation]):
    """Models scored on the evaluation rows of datasets: ``client.evaluations``."""

    _kind = EVALUATIONS
    _look = staticmethod(calls.get)
    create = _method(calls.create)
    get = _method(calls.get)
    cancel = _method(calls.cancel)
    retry = _method(calls.retry)
    detail = _method(calls.detail)
    records_page = _method(calls.records_page)
    export = _method(calls.export_records)
    compare = _method(calls.compare)
    frontier = _method(calls.frontier)
    try_policy = _method(calls.try_policy)
    cost_curve = _method(calls.cost_curve)
    outcome_threshold = _method(calls.outcome_threshold)

    def list(
        self,
        dataset_id: str,
        *,
        status: str | Sequence[str] | None = None,
        page_size: int = 200,
    ) -> Iterator[Evaluation]:
        """Iterate over a dataset's evaluations, or those of a status, newest first."""
        return self._iterate(
            lambda cursor: calls.page(dataset_id, status=status, limit=page_size, cursor=cursor)
        )

    def records(
        self,
        evaluation_id: str,
        *,
        limit: int | None = None,
        **filters: Unpack[RecordFilters],
    ) -> RecordList:
        """Return scored decisions of an evaluation that succeeded.

        Parameters
        ----------
        **filters
            Which of them, and in what order: ``decision``, ``wrong``, ``target``, ``top``,
            ``p_from``, ``p_to``, ``slice_by``, ``slice``, ``contexts``, ``order``, ``context``.
        """
        return self._collect_records(
            lambda offset, size: calls.records_page(
                evaluation_id, offset=offset, limit=size, **filters
            ),
            limit,
        )

    def export_to(
        self,
        evaluation_id: str,
        path: str | Path,
        *,
        format: ExportFormat | None = None,  # noqa: A002
        force: bool = False,
        progress: Progress | None = None,
        **filters: Unpack[RecordFilters],
    ) -> Path:
        """Write scored decisions to a file, or to a folder that Hugging Face ``datasets`` loads.

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
        **filters
            Which of them, and in what order, as for ``records``.
        """
        path = Path(path)
        format_ = format_of(path, format)
        call = calls.export_records(evaluation_id, format=format_, **filters)
        return self._client.save(call, path, format_, force=force, progress=progress)
