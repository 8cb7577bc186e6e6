"""``/v1/fine-tuning/jobs``: the fine-tunes of families, their events and their held-out records."""

import functools

from steelyard.errors import DatasetDeletedError
from steelyard.families.fine_tune_wire import Job, JobsQuery
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.http.routing import Access, row
from steelyard.job_frame.routes import job_routes

_route = functools.partial(row, access=Access.KEYED, tags=("fine-tuning",))
_JOBS = job_routes(
    FineTuneJobs,
    "/v1/fine-tuning/jobs",
    "job",
    tag="fine-tuning",
    job=Job,
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
        "GET /v1/fine-tuning/jobs/{job}/events",
        FineTuneJobs.events,
        "List everything that happened to a fine-tune, the oldest first.",
    ),
    _route(
        "GET /v1/fine-tuning/jobs/{job}/records",
        FineTuneJobs.records,
        "Page the held-out decisions as the new model, its base or its parent scored them.",
        errors=(DatasetDeletedError,),
    ),
    _JOBS.cancel,
)
