"""``/v1/decisions/log`` and ``/v1/decisions/summary``: what was answered, and what came true."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.access import is_from_this_machine
from steelyard.api.bodies import json_response
from steelyard.api.callers import caller_of, services_of
from steelyard.api.metrics import Metrics
from steelyard.api.queries import read_query
from steelyard.api.routing import Access, Route
from steelyard.errors import NotFoundError
from steelyard.evaluation.traffic import share
from steelyard.wire.decision_log import (
    DecisionLogPage,
    DecisionLogQuery,
    DecisionSummary,
    DecisionSummaryQuery,
    ServerErrors,
    StoredAnswer,
)

#: The routes that decide.
_DECIDING = frozenset({"/v1/decide", "/v1/systemone", "/v1/decisions"})


async def get_log(request: Request) -> HTTPResponse:
    """Give a page of stored answers."""
    query = read_query(request, DecisionLogQuery)
    return json_response(await services_of(request).decision_log.page(caller_of(request), query))


async def get_answer(request: Request) -> HTTPResponse:
    """Give a stored answer in full."""
    decision_id = str(request.match_info["decision"])
    log = services_of(request).decision_log
    return json_response(await log.get(caller_of(request), decision_id))


async def get_summary(request: Request) -> HTTPResponse:
    """Give figures of a window."""
    query = read_query(request, DecisionSummaryQuery)
    caller = caller_of(request)
    # Who may read /metrics may know how everybody's requests ended.
    is_operator = caller.is_operator or is_from_this_machine(request)
    server = _errors(request.app.ctx.metrics) if is_operator else None
    log = services_of(request).decision_log
    return json_response(await log.summary(caller, query, server))


def _errors(metrics: Metrics) -> ServerErrors:
    counts = metrics.count_statuses(_DECIDING)
    n = sum(counts.values())
    refused = sum(count for status, count in counts.items() if 400 <= status < 500)
    failed = sum(count for status, count in counts.items() if status >= 500)
    return ServerErrors(
        since=metrics.started_at,
        requests=n,
        refused=refused,
        failed=failed,
        error_rate=share(failed, n),
    )


_TAGS = ("decisions",)

ROUTES = (
    Route(
        method="GET",
        path="/v1/decisions/log",
        handler=get_log,
        summary="Page the stored answers, the newest first, with what came true.",
        access=Access.KEYED,
        tags=_TAGS,
        query=DecisionLogQuery,
        response=DecisionLogPage,
    ),
    Route(
        method="GET",
        path="/v1/decisions/log/{decision}",
        handler=get_answer,
        summary="Give a stored answer in full: what was asked, answered and observed.",
        access=Access.KEYED,
        tags=_TAGS,
        response=StoredAnswer,
        errors=(NotFoundError,),
    ),
    Route(
        method="GET",
        path="/v1/decisions/summary",
        handler=get_summary,
        summary="Sum up the stored answers of a window: rates, accuracy on feedback, latency.",
        access=Access.KEYED,
        tags=_TAGS,
        query=DecisionSummaryQuery,
        response=DecisionSummary,
    ),
)
