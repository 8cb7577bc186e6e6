"""Exports to the disk: one function an export, with its call and its file."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from steelyard.client import console_calls, dataset_calls, decide_calls, evaluation_calls
from steelyard.client.decide_calls import DecisionFilters
from steelyard.client.evaluation_calls import RecordFilters
from steelyard.client.row_sources import Progress
from steelyard.client.saving import Saving, format_of
from steelyard.datasets.wire import Partition
from steelyard.wire.queries import ExportFormat


def save_decisions(
    path: str | Path,
    *,
    format: ExportFormat | None = None,  # noqa: A002
    force: bool = False,
    progress: Progress | None = None,
    **filters: Unpack[DecisionFilters],
) -> Saving:
    """Write stored decisions, by the filters of ``decision_log``, as ``save_rows`` writes rows."""
    format_ = format_of(Path(path), format)
    call = decide_calls.export_decisions(format_, **filters)
    return Saving(call=call, path=Path(path), format=format_, force=force, progress=progress)


def save_records(
    evaluation_id: str,
    path: str | Path,
    *,
    format: ExportFormat | None = None,  # noqa: A002
    force: bool = False,
    progress: Progress | None = None,
    **filters: Unpack[RecordFilters],
) -> Saving:
    """Write scored decisions, by ``RecordFilters``, as ``save_rows`` writes rows."""
    format_ = format_of(Path(path), format)
    call = evaluation_calls.export_records(evaluation_id, format=format_, **filters)
    return Saving(call=call, path=Path(path), format=format_, force=force, progress=progress)


def save_rows(
    dataset_id: str,
    path: str | Path,
    *,
    format: ExportFormat | None = None,  # noqa: A002
    partition: Partition = "all",
    version: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Saving:
    """Write a version's rows to a file, or to a folder that Hugging Face ``datasets`` loads.

    Parameters
    ----------
    path
        A file, or a folder where the format is ``hf`` and the path does not end with ``.zip``.
    format
        That of the path's ending when left out; a path without one of them is a folder.
    force
        Whether to replace an existing file.
    progress
        Called with the bytes received so far.

    Examples
    --------
    >>> client.datasets.export_to("ds_…", "tickets", format="hf")  # doctest: +SKIP
    """
    format_ = format_of(Path(path), format)
    call = dataset_calls.export_rows(
        dataset_id, format=format_, partition=partition, version=version
    )
    return Saving(call=call, path=Path(path), format=format_, force=force, progress=progress)


def save_account(
    path: str | Path, *, force: bool = False, progress: Progress | None = None
) -> Saving:
    """Write all of the account's data to a zip.

    Raise ``ValueError`` when the path does not end with ``.zip``.
    """
    path = Path(path)
    if path.suffix.lower() != ".zip":
        raise ValueError(f"{path} is to be a zip; give a name that ends with .zip.")
    call = console_calls.export_account()
    return Saving(call=call, path=path, format="hf", force=force, progress=progress)
