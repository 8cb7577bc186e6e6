"""Which rows a version has, by their hashes; those of parts that came one by one are in one file.

A dataset that grows by small appends has a part for each of them. To look into every one would make each
append dearer than the one before it, and in an object store each look is a request.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator, Sequence

import msgspec
import polars as pl
import pyarrow as pa

from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.versions import Manifest, Part
from steelyard.datasets.wire import Side
from steelyard.storage.frame_store import FrameStore

#: The most rows that come at once whose hashes are put into a file, and the most of a file that grows: it
#: is written anew with each version.
_AT_ONCE, _GROWING = 1 << 17, 1 << 13
_HASHES = ("row_sha256", "context_sha256")
#: Not that of rows, which tools that look for them would take these for.
_SUFFIX = ".file"
_NONE = pl.DataFrame(schema=dict.fromkeys(_HASHES, pl.Binary) | {"part": pl.String})


class KnownRows:
    """The rows of a version, and those that the next one adds."""

    def __init__(self, store: FrameStore, previous: Manifest | None) -> None:
        self._store = store
        self._previous = previous
        self._parts = () if previous is None else previous.parts
        self._added: dict[Side, list[pl.DataFrame]] = {}
        self._n_added = 0

    def find(self, contexts: pl.Series) -> pl.DataFrame:
        """Return the rows of the version that are on some contexts."""
        looked_up = contexts.to_frame().lazy()
        named = pl.DataFrame(
            [(part.sha256, str(part.side)) for part in self._parts],
            schema={"part": pl.String, "side": pl.String},
            orient="row",
        )
        # Rows of a part that is none of this version's any more are gone from it.
        frames = [self._in_files.join(named, on="part").lazy()]
        if self._apart:
            frames.append(self._scan(*self._apart))
        columns = [*_HASHES, pl.col("side").cast(pl.String)]
        rows = pl.concat([frame.select(columns) for frame in frames])
        return rows.join(looked_up, on="context_sha256", how="semi").collect(engine="streaming")

    def add(self, rows: pa.Table, side: Side) -> None:
        """Take note of rows that the next version adds."""
        self._n_added += len(rows)
        if self._n_added > _AT_ONCE:
            self._added.clear()
        else:
            frame = pl.DataFrame(pl.from_arrow(rows.select(_HASHES)))
            self._added.setdefault(side, []).append(frame)

    def files_with(self, added: Sequence[Part]) -> tuple[str, ...]:
        """Store the hashes of the rows that were added; return the files of the next version."""
        hashes = [
            rows.with_columns(part=pl.lit(part.sha256))
            for side, frames in self._added.items()
            for part, rows in _cut([part for part in added if part.side == side], frames)
        ]
        n_rows = self._n_added if hashes else 0
        for part in self._apart:
            if n_rows + part.rows <= _AT_ONCE:
                n_rows += part.rows
                rows = self._scan(part).select(_HASHES).collect()
                hashes.append(rows.with_columns(part=pl.lit(part.sha256)))
        if not hashes:
            return tuple(self._files)
        growing = [name for name, frame in self._files.items() if len(frame) + n_rows <= _GROWING]
        content = io.BytesIO()
        pl.concat([*(self._files[name] for name in growing), *hashes]).write_parquet(content)
        name = self._store.put(content.getvalue(), _SUFFIX)
        return (*(name for name in self._files if name not in growing), name)

    def _scan(self, *parts: Part) -> pl.LazyFrame:
        assert self._previous is not None  # noqa: S101  it has the parts
        return scan(self._store, msgspec.structs.replace(self._previous, parts=parts))

    @functools.cached_property
    def _apart(self) -> list[Part]:
        """The parts whose hashes are in no file."""
        in_files = set(self._in_files["part"].unique())
        return [part for part in self._parts if part.sha256 not in in_files]

    @functools.cached_property
    def _in_files(self) -> pl.DataFrame:
        """The hashes of all files."""
        return pl.concat([_NONE, *self._files.values()])

    @functools.cached_property
    def _files(self) -> dict[str, pl.DataFrame]:
        """The hashes by the names of their files; without one that is gone, whose parts are read."""
        names = () if self._previous is None else self._previous.known
        contents = {name: self._store.find(f"{name}{_SUFFIX}") for name in names}
        return {
            name: pl.read_parquet(io.BytesIO(content))
            for name, content in contents.items()
            if content is not None
        }


def _cut(
    parts: Sequence[Part], frames: Sequence[pl.DataFrame]
) -> Iterator[tuple[Part, pl.DataFrame]]:
    """Yield the rows of each part of a side, which has all of the frames in their order."""
    rows, start = pl.concat(frames), 0
    for part in parts:
        yield part, rows.slice(start, part.rows)
        start += part.rows
