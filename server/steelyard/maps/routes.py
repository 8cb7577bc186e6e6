"""``/v1/maps``: the rows of a dataset as points in a plane."""

from __future__ import annotations

from functools import partial

from steelyard import errors
from steelyard.http.routing import REVIEWERS, Access, Route
from steelyard.maps.service import DatasetMaps
from steelyard.maps.wire import (
    CreateMap,
    DatasetMap,
    MapPage,
    MapPoints,
    MapsQuery,
    MapValues,
    MapValuesQuery,
)

_route = partial(Route, access=Access.KEYED, tags=("maps",))
_read = partial(_route, roles=REVIEWERS)
_KEYED = (
    errors.NotFoundError,
    errors.IdempotencyConflictError,
    errors.IdempotencyResponseExpiredError,
)
_MAPS = "/v1/maps"
_MAP = f"{_MAPS}/{{map}}"

ROUTES = (
    _route(
        method="POST",
        path=_MAPS,
        use=lambda call: call.service(DatasetMaps).create(call.write, call.body),
        summary="Lay the rows of a version out as points; one that is there is returned.",
        request=CreateMap,
        response=DatasetMap,
        errors=(
            *_KEYED,
            errors.DatasetArchivedError,
            errors.DatasetDeletedError,
            errors.VectorsUnavailableError,
            errors.TenantQueueFullError,
            errors.QueueFullError,
        ),
    ),
    _read(
        method="GET",
        path=_MAPS,
        use=lambda call: call.service(DatasetMaps).page(call.caller, call.query),
        summary="Page the account's maps, the newest first.",
        query=MapsQuery,
        response=MapPage,
    ),
    _read(
        method="GET",
        path=_MAP,
        use=lambda call: call.service(DatasetMaps).get(call.caller, call.path["map"]),
        summary="Return a map: how far it is.",
        response=DatasetMap,
        errors=(errors.NotFoundError,),
    ),
    _read(
        method="GET",
        path=f"{_MAP}/points",
        use=lambda call: call.service(DatasetMaps).points(call.caller, call.path["map"]),
        summary="Return the points of a map, as columns.",
        response=MapPoints,
        errors=(errors.NotFoundError, errors.MapNotReadyError),
    ),
    _read(
        method="GET",
        path=f"{_MAP}/values",
        use=lambda call: call.service(DatasetMaps).values(
            call.caller, call.path["map"], call.query
        ),
        summary="Return what is known of each point: its label, and how a model answered.",
        query=MapValuesQuery,
        response=MapValues,
        errors=(
            errors.NotFoundError,
            errors.DatasetDeletedError,
            errors.MapNotReadyError,
            errors.EvaluationNotReadyError,
        ),
    ),
    _route(
        method="POST",
        path=f"{_MAP}/cancel",
        use=lambda call: call.service(DatasetMaps).cancel(call.write, call.path["map"]),
        summary="Stop a map; asked for again, it goes on from what it has.",
        response=DatasetMap,
        errors=_KEYED,
    ),
)
