"""The frames of a client: Polars and Arrow, which load slowly and may be missing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.maps.wire import MapPoints, MapValues
from steelyard.wire.queries import ExportFormat
from steelyard.wire.requirements import required_for

if TYPE_CHECKING:
    import polars as pl


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
