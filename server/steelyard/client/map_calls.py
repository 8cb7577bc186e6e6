"""Calls of the map routes: one function a route."""

from __future__ import annotations

from steelyard.client.calls import Call, read, segment, write
from steelyard.maps.wire import DatasetMap, MapPage, MapPoints, MapValues

_MAPS = "/v1/maps"


def create(
    dataset_id: str,
    *,
    version: int | None = None,
    model: str | None = None,
    idempotency_key: str | None = None,
) -> Call[DatasetMap]:
    """Lay the rows of a version out as points, or return the map that is there: ``POST /v1/maps``.

    The newest version, and the vectors of the default base model, when left out.
    """
    fields = {"dataset_id": dataset_id, "version": version, "model": model}
    return write(_MAPS, DatasetMap, fields, key=idempotency_key)


def page(
    *, dataset_id: str | None = None, page_size: int = 200, cursor: str | None = None
) -> Call[MapPage]:
    """List maps, newest first: ``GET /v1/maps``."""
    return read(_MAPS, MapPage, dataset_id=dataset_id, limit=page_size, cursor=cursor)


def get(map_id: str) -> Call[DatasetMap]:
    """Return a map, how far it is: ``GET /v1/maps/{map}``."""
    return read(_path(map_id), DatasetMap)


def points(map_id: str) -> Call[MapPoints]:
    """Return the points of a map, as columns: ``GET /v1/maps/{map}/points``."""
    return read(f"{_path(map_id)}/points", MapPoints)


def values(map_id: str, decision: str, *, evaluation: str | None = None) -> Call[MapValues]:
    """Return the values of each point, as columns: ``GET /v1/maps/{map}/values``.

    The labels of a decision, and the answers of the model of an ``evaluation`` of the dataset.
    """
    path = f"{_path(map_id)}/values"
    return read(path, MapValues, decision=decision, evaluation=evaluation)


def cancel(map_id: str, *, idempotency_key: str | None = None) -> Call[DatasetMap]:
    """Stop a map; a new request resumes it: ``POST …/{map}/cancel``."""
    return write(f"{_path(map_id)}/cancel", DatasetMap, {}, key=idempotency_key)


def _path(map_id: str) -> str:
    return f"{_MAPS}/{segment(map_id)}"
