"""``POST /v1/lint``: wording that makes a request's answers worse; no model runs."""

from __future__ import annotations

from steelyard.decisions.lint.service import find_warnings
from steelyard.decisions.lint.wire import LintResponse
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.decisions.wire import DecideRequest
from steelyard.errors import InvalidRequestError
from steelyard.http.routing import Access, Call, row
from steelyard.wire.payloads import work_on

#: Outcomes of all decisions that are linted for nothing at once: they are compared with each other.
MAX_OUTCOMES = 1_024


async def post_lint(call: Call) -> LintResponse:
    """Return the warnings on how decisions are asked."""
    request: ValidRequest = call.body
    n_outcomes = sum(len(decision.outcomes.names) for decision in request.decisions)
    if n_outcomes > MAX_OUTCOMES:
        message = (
            f"decisions have {n_outcomes} outcomes in all, and {MAX_OUTCOMES} are linted at once; "
            "send them in several requests, or use `steelyard lint`."
        )
        raise InvalidRequestError.at(("body", "decisions"), message, "too_long")
    return LintResponse(warnings=await work_on(find_warnings, request, is_long=request.is_long))


ROUTES = (
    row(
        "POST /v1/lint",
        post_lint,
        "Return what about a request makes its answers worse; no model runs.",
        access=Access.PUBLIC,
        tags=("decide",),
        request=DecideRequest,
        read=read_request,
        is_bounded=True,
        is_inference=True,
    ),
)
