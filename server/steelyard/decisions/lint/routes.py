"""``POST /v1/lint``: what about a decide request makes its answers worse; no model runs."""

from __future__ import annotations

from steelyard.decisions.lint.findings import find_warnings
from steelyard.decisions.lint.wire import LintResponse
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.decisions.wire import DecideRequest
from steelyard.http.routing import Access, Call, Route
from steelyard.wire.payloads import work_on


async def post_lint(call: Call) -> LintResponse:
    """Return the warnings on how decisions are asked."""
    request: ValidRequest = call.body
    return LintResponse(warnings=await work_on(find_warnings, request, is_long=request.is_long))


ROUTES = (
    Route(
        method="POST",
        path="/v1/lint",
        use=post_lint,
        summary="Return what about a request makes its answers worse; no model runs.",
        access=Access.PUBLIC,
        tags=("decide",),
        request=DecideRequest,
        read=read_request,
        response=LintResponse,
        is_inference=True,
    ),
)
