"""``/v1/jobs``: the account's jobs of all kinds."""

from __future__ import annotations

from steelyard.http.routing import Access, Route
from steelyard.job_list.service import AllJobs
from steelyard.wire.jobs import AllJobsQuery, JobSummaryPage

ROUTES = (
    Route(
        method="GET",
        path="/v1/jobs",
        use=lambda call: call.service(AllJobs).page(call.caller, call.query),
        summary="Page the account's jobs of all kinds, the newest first: how far each is.",
        query=AllJobsQuery,
        response=JobSummaryPage,
        access=Access.KEYED,
        tags=("jobs",),
    ),
)
