"""``/v1/maps``: the rows of a dataset as points in a plane."""

from functools import partial

from steelyard import errors
from steelyard.http.routing import KEY_ERRORS, REVIEWERS, Access, row
from steelyard.job_frame.routes import job_routes
from steelyard.maps.service import DatasetMaps
from steelyard.maps.wire import DatasetMap, MapsQuery

_route = partial(row, access=Access.KEYED, tags=("maps",))
_read = partial(_route, roles=REVIEWERS)
_MAPS = "/v1/maps"
_MAP = f"{_MAPS}/{{map}}"
_JOBS = job_routes(
    DatasetMaps,
    _MAPS,
    "map",
    tag="maps",
    job=DatasetMap,
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
        f"POST {_MAPS}",
        DatasetMaps.create,
        "Lay the rows of a version out as points; one that is there is returned.",
        errors=(
            *KEY_ERRORS,
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
        f"GET {_MAP}/points",
        DatasetMaps.points,
        "Return the points of a map, as columns.",
        errors=(errors.MapNotReadyError,),
    ),
    _read(
        f"GET {_MAP}/values",
        DatasetMaps.values,
        "Return what is known of each point: its label, and how a model answered.",
        errors=(
            errors.DatasetDeletedError,
            errors.MapNotReadyError,
            errors.EvaluationNotReadyError,
            errors.RowsLabelledApartError,
        ),
    ),
    _JOBS.cancel,
)
