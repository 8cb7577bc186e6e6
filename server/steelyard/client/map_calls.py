"""Calls of the map routes: one function a route."""

from __future__ import annotations

from steelyard.client.calls import Call
from steelyard.client.routes import route
from steelyard.maps.wire import DatasetMap, MapPage, MapPoints, MapValues


@route("POST /v1/maps", DatasetMap)
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


@route("GET /v1/maps", MapPage)
def page(
    *, dataset_id: str | None = None, page_size: int = 200, cursor: str | None = None
) -> Call[MapPage]:
    """List maps, newest first: ``GET /v1/maps``."""


@route("GET /v1/maps/{map_id}", DatasetMap)
def get(map_id: str) -> Call[DatasetMap]:
    """Return a map, how far it is: ``GET /v1/maps/{map}``."""


@route("GET /v1/maps/{map_id}/points", MapPoints)
def points(map_id: str) -> Call[MapPoints]:
    """Return the points of a map, as columns: ``GET /v1/maps/{map}/points``."""


@route("GET /v1/maps/{map_id}/values", MapValues)
def values(map_id: str, decision: str, *, evaluation: str | None = None) -> Call[MapValues]:
    """Return the values of each point, as columns: ``GET /v1/maps/{map}/values``.

    The labels of a decision, and the answers of the model of an ``evaluation`` of the dataset.
    """


@route("POST /v1/maps/{map_id}/cancel", DatasetMap)
def cancel(map_id: str, *, idempotency_key: str | None = None) -> Call[DatasetMap]:
    """Stop a map; a new request resumes it: ``POST …/{map}/cancel``."""
