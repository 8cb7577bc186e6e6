"""Exports written to the disk: complete or not at all, and never over other files unasked."""

from __future__ import annotations

import os
import shutil
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from steelyard.client.calls import Call
from steelyard.client.row_sources import Progress
from steelyard.durable import flush, flush_tree
from steelyard.wire.queries import ExportFormat

#: Formats by the ending of a file; a path without one is a folder.
_BY_ENDING: dict[str, ExportFormat] = {".csv": "csv", ".parquet": "parquet", ".zip": "hf"}
#: What an exported folder has, and nothing else: only such a one is replaced.
_EXPORTED = {"README.md", "data"}


def format_of(path: Path, chosen: ExportFormat | None = None) -> ExportFormat:
    """Return the format of an export: the one chosen, or that of a path's ending."""
    return chosen or _BY_ENDING.get(path.suffix.lower(), "hf")


def check_free(path: Path, *, force: bool) -> None:
    """Refuse to overwrite a file; with ``force``, a file that was not exported.

    Raise ``FileExistsError`` when there is something that is not to be replaced. Raise
    ``FileNotFoundError`` when the folder that it would be in is not there.
    """
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"The folder of {path} is not there; make it first.")
    if not path.exists():
        return
    if not force:
        raise FileExistsError(f"{path} is there already; name another, or replace it with force.")
    if path.is_dir() and {entry.name for entry in path.iterdir()} - _EXPORTED:
        raise FileExistsError(
            f"{path} is a folder that has other things than an export; name another."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """An export written to the disk: its call, and its file."""

    call: Call[bytes]
    path: Path
    format: ExportFormat
    force: bool = False
    #: Called with the bytes received so far.
    progress: Progress | None = None


@contextmanager
def export_file(path: Path, format_: ExportFormat, *, force: bool) -> Iterator[BinaryIO]:
    """Yield a file to write an export to; at the end it takes the place of ``path``.

    A packed export is unpacked to a folder, unless the path ends with ``.zip``.
    """
    check_free(path, force=force)
    is_folder = format_ == "hf" and path.suffix.lower() != ".zip"
    # Of its own, so that two that write to one place each write a whole one.
    own = uuid.uuid4().hex[:8]
    partial = path.with_name(f".{path.name}.{own}.partial")
    unpacked = path.with_name(f".{path.name}.{own}.unpacked")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_free(path, force=force)
        if is_folder:
            with zipfile.ZipFile(partial) as packed:
                packed.extractall(unpacked)
            flush_tree(unpacked)
        _replace(unpacked if is_folder else partial, path)
    finally:
        partial.unlink(missing_ok=True)
        shutil.rmtree(unpacked, ignore_errors=True)


def _replace(made: Path, path: Path) -> None:
    """Move an export to its place; an existing folder is put aside first."""
    aside = made.with_suffix(".replaced")
    if path.is_dir() or (path.exists() and made.is_dir()):
        path.rename(aside)
    made.replace(path)
    flush(path.parent)
    if aside.is_dir():
        shutil.rmtree(aside)
    else:
        aside.unlink(missing_ok=True)
