"""``/v1/fine-tuning/jobs``: the fine-tunes of families, their events and their held-out records."""

from __future__ import annotations

import functools

from steelyard.errors import DatasetDeletedError, NotFoundError
from steelyard.evaluations.wire import JobRecordPage
from steelyard.families.fine_tune_wire import Job, JobEvents, JobPage, JobRecordsQuery, JobsQuery
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.http.routing import Access, Route
from steelyard.job_frame.routes import job_routes

_route = functools.partial(Route, access=Access.KEYED, tags=("fine-tuning",))
_JOBS = job_routes(
    FineTuneJobs,
    "/v1/fine-tuning/jobs",
    "job",
    tag="fine-tuning",
    job=Job,
    page=JobPage,
    query=JobsQuery,
    summaries=(
        "Page the account's fine-tunes, the newest first.",
        "Return a fine-tune: how far it is, then its outcome, its gate and its curve.",
        "Ask a fine-tune to stop; one that has ended is given as it is.",
    ),
)

ROUTES = (
    _JOBS.page,
    _JOBS.get,
    _route(
        method="GET",
        path="/v1/fine-tuning/jobs/{job}/events",
        use=lambda call: call.service(FineTuneJobs).events(call.caller, call.path["job"]),
        summary="List everything that happened to a fine-tune, the oldest first.",
        response=JobEvents,
        errors=(NotFoundError,),
    ),
    _route(
        method="GET",
        path="/v1/fine-tuning/jobs/{job}/records",
        use=lambda call: call.service(FineTuneJobs).records(
            call.caller, call.path["job"], call.query
        ),
        summary="Page the held-out decisions as the new model, its base or its parent scored them.",
        query=JobRecordsQuery,
        response=JobRecordPage,
        errors=(NotFoundError, DatasetDeletedError),
    ),
    _JOBS.cancel,
)
