"""``/v1/maps``: the rows of a dataset as points in a plane."""

from __future__ import annotations

from functools import partial

from steelyard import errors
from steelyard.http.routing import REVIEWERS, Access, Route
from steelyard.job_frame.routes import KEYED_ERRORS, job_routes
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
_MAPS = "/v1/maps"
_MAP = f"{_MAPS}/{{map}}"
_JOBS = job_routes(
    DatasetMaps,
    _MAPS,
    "map",
    tag="maps",
    job=DatasetMap,
    page=MapPage,
    query=MapsQuery,
    summaries=(
        "Page the account's maps, the newest first.",
        "Return a map: how far it is.",
        "Stop a map; asked for again, it goes on from what it has.",
    ),
    readers=REVIEWERS,
)

ROUTES = (
    _route(
        method="POST",
        path=_MAPS,
        use=lambda call: call.service(DatasetMaps).create(call.write, call.body),
        summary="Lay the rows of a version out as points; one that is there is returned.",
        request=CreateMap,
        response=DatasetMap,
        errors=(
            *KEYED_ERRORS,
            errors.DatasetArchivedError,
            errors.DatasetDeletedError,
            errors.VectorsUnavailableError,
            errors.TenantQueueFullError,
            errors.QueueFullError,
        ),
    ),
    _JOBS.page,
    _JOBS.get,
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
    _JOBS.cancel,
)
