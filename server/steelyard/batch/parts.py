"""Stored results of a run: a folder of complete parts that a later run continues from."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow.parquet as pq

from steelyard.durable import flush, write_atomically

_MANIFEST = "run.json"


class Parts:
    """Scored parts in the order of the rows; each is there whole or not at all.

    ``run`` is a name of the run that stays when it is taken up again.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self.folder = folder
        self.run = run
        paths = sorted(folder.glob("part-*.parquet"))
        #: Those that are there. Of a run of several processes that died some may be missing between.
        self.numbers = {int(path.stem.removeprefix("part-")) for path in paths}
        self.n_rows = sum(pq.read_metadata(path).num_rows for path in paths)

    @property
    def first_missing(self) -> int:
        """Number of the first part that is not there."""
        return next(number for number in count() if number not in self.numbers)

    def note(self, number: int, n_rows: int) -> None:
        """Note that a part of so many rows was written."""
        self.numbers.add(number)
        self.n_rows += n_rows

    def scan(self) -> pl.LazyFrame:
        """Return all rows, unread; a column that a part lacks is null there."""
        paths = [_path(self.folder, number) for number in sorted(self.numbers)]
        return pl.concat([pl.scan_parquet(path) for path in paths], how="diagonal_relaxed")

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of each part, with the columns that it has."""
        for number in sorted(self.numbers):
            yield pl.read_parquet(_path(self.folder, number))

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder)


def write_part(folder: Path, number: int, frame: pl.DataFrame) -> None:
    """Write a part for good: whole, or not at all."""
    content = io.BytesIO()
    frame.write_parquet(content)
    keep_part(folder, number, content.getvalue())


def keep_part(folder: Path, number: int, content: bytes) -> None:
    """Write a part that is Parquet already for good: whole, or not at all."""
    write_atomically(_path(folder, number), content)
    flush(folder)


def _path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:08}.parquet"


@contextmanager
def opened_parts(folder: Path, of: Mapping[str, Any], *, restart: bool = False) -> Iterator[Parts]:
    """Yield the parts of a run, identified by ``of``; an earlier run's parts are continued.

    Raise ``ValueError`` when the folder holds another run, or another process works in it.
    """
    folder.mkdir(exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another run works in {folder}; wait for it, or choose another output."
            ) from None
        if restart:
            for path in folder.glob("part-*.parquet"):
                path.unlink()
            (folder / _MANIFEST).unlink(missing_ok=True)
        yield Parts(folder, _run_of(folder, of))
    finally:
        os.close(handle)


def _run_of(folder: Path, of: Mapping[str, Any]) -> str:
    """Return the name of the folder's run; write a new one down first."""
    manifest = folder / _MANIFEST
    expected = msgspec.json.decode(msgspec.json.encode(of))
    if manifest.exists():
        stored = msgspec.json.decode(manifest.read_bytes())
        changed = [name for name in expected if stored["of"].get(name) != expected[name]]
        if changed:
            raise ValueError(
                f"{folder} holds the rows of a run with other {' and '.join(changed)}; start over "
                "with restart, or choose another output."
            )
        return str(stored["run"])
    if any(folder.iterdir()):
        raise ValueError(f"{folder} has files that are no run's; choose another output.")
    run = uuid.uuid4().hex
    write_atomically(manifest, msgspec.json.encode({"run": run, "of": expected}))
    flush(folder)
    flush(folder.parent)
    return run
