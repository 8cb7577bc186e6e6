"""An operator's calls of the routes of models: one function a route of the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from steelyard.client.calls import Call
from steelyard.client.routes import listed, route
from steelyard.models.route_wire import ModelRoute, RemovedRoute, RouteList


@route("GET /v1/routes", RouteList)
def routes() -> Call[RouteList]:
    """Return the routes of the server: ``GET /v1/routes``."""


@route("POST /v1/routes", ModelRoute, models=listed)
def fit_route(
    name: str,
    models: Sequence[str],
    dataset_id: str,
    *,
    bound: Literal["accuracy", "price", "share"],
    value: float,
    rows: int | None = None,
    confidence: float | None = None,
    replace: bool | None = None,
) -> Call[ModelRoute]:
    """Begin to fit a route on a dataset: ``POST /v1/routes``.

    Parameters
    ----------
    models
        Base and connected models in the order to ask; two to four.
    bound, value
        ``accuracy``: the cheapest that is certified to be right so often. ``price``, in USD for
        1,000 decisions, or ``share``, of the decisions beyond the first model: the most accurate
        within it.
    rows
        Rows of each side that are asked at most; 200 by default.
    confidence
        Of an accuracy that is certified; 0.95 by default.
    replace
        Fit a route anew that is there.
    """


@route("DELETE /v1/routes/{name}", RemovedRoute)
def remove_route(name: str) -> Call[RemovedRoute]:
    """Remove a route; its models stay: ``DELETE /v1/routes/{route}``."""
