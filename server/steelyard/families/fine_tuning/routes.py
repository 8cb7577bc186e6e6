"""``/v1/fine-tuning/jobs``: the fine-tunes of families, their events and their held-out records."""

from __future__ import annotations

import functools

from steelyard.errors import (
    DatasetDeletedError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    NotFoundError,
)
from steelyard.evaluations.wire import JobRecordPage
from steelyard.families.fine_tune_wire import Job, JobEvents, JobPage, JobRecordsQuery, JobsQuery
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.http.routing import Access, Route

_TAGS = ("fine-tuning",)

_route = functools.partial(Route, access=Access.KEYED, tags=_TAGS)

ROUTES = (
    _route(
        method="GET",
        path="/v1/fine-tuning/jobs",
        use=lambda call: call.service(FineTuneJobs).page(call.caller, call.query),
        summary="Page the account's fine-tunes, the newest first.",
        query=JobsQuery,
        response=JobPage,
    ),
    _route(
        method="GET",
        path="/v1/fine-tuning/jobs/{job}",
        use=lambda call: call.service(FineTuneJobs).get(call.caller, call.path["job"]),
        summary="Return a fine-tune: how far it is, then its outcome, its gate and its curve.",
        response=Job,
        errors=(NotFoundError,),
    ),
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
    _route(
        method="POST",
        path="/v1/fine-tuning/jobs/{job}/cancel",
        use=lambda call: call.service(FineTuneJobs).cancel(call.write, call.path["job"]),
        summary="Ask a fine-tune to stop; one that has ended is given as it is.",
        response=Job,
        errors=(NotFoundError, IdempotencyConflictError, IdempotencyResponseExpiredError),
    ),
)
