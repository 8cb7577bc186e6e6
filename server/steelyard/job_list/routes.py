"""``/v1/jobs``: the account's jobs of all kinds."""

from steelyard.http.routing import Access, row
from steelyard.job_list.service import AllJobs

ROUTES = (
    row(
        "GET /v1/jobs",
        AllJobs.page,
        "Page the account's jobs of all kinds, the newest first: how far each is.",
        access=Access.KEYED,
        tags=("jobs",),
    ),
)
