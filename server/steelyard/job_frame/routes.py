"""The routes that all kinds of jobs have."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from steelyard.http.routing import KEY_ERRORS, Access, Route, row
from steelyard.job_frame.queue import JobQueue


class JobRoutes(NamedTuple):
    """The routes of one kind of job; each kind has a further one that queues them."""

    page: Route
    get: Route
    cancel: Route


def job_routes(
    service: type[JobQueue[Any, Any]],
    path: str,
    name: str,
    *,
    tag: str,
    job: type[Struct],
    query: type[Struct],
    summaries: tuple[str, str, str],
    readers: tuple[str, ...] = (),
) -> JobRoutes:
    """Return the routes of jobs below a path; ``name`` is the path's parameter for a job's id."""
    route = partial(row, access=Access.KEYED, tags=(tag,))
    return JobRoutes(
        route(
            f"GET {path}",
            lambda call: call.service(service).page(call.caller, call.query),
            summaries[0],
            query=query,
            response=service.page_type,
            roles=readers,
        ),
        route(
            f"GET {path}/{{{name}}}",
            lambda call: call.service(service).get(call.caller, call.path[name]),
            summaries[1],
            response=job,
            roles=readers,
        ),
        route(
            f"POST {path}/{{{name}}}/cancel",
            lambda call: call.service(service).cancel(call.write, call.path[name]),
            summaries[2],
            response=job,
            errors=KEY_ERRORS,
        ),
    )
