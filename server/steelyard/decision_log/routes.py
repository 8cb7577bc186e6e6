"""``/v1/decisions/log`` and ``/v1/decisions/summary``: answers and their outcomes."""

from __future__ import annotations

from sanic import Request

from steelyard.decision_log import wire
from steelyard.decision_log.feedback import FeedbackService
from steelyard.decision_log.service import DecisionLog
from steelyard.decision_log.traffic import share
from steelyard.errors import IdempotencyConflictError, RequestInProgressError
from steelyard.exports import MEDIA_TYPES
from steelyard.http.access import is_from_this_machine
from steelyard.http.bodies import send_stream
from steelyard.http.metrics import Metrics
from steelyard.http.routing import Access, Call, Route, row

#: The routes that decide.
_DECIDING = frozenset({"/v1/decide", "/v1/systemone", "/v1/decisions"})


async def get_summary(request: Request, call: Call) -> wire.DecisionSummary:
    """Return figures of a window."""
    # Who may read /metrics may know how everybody's requests ended.
    is_operator = call.caller.is_operator or is_from_this_machine(request)
    server = _errors(request.app.ctx.metrics) if is_operator else None
    return await call.service(DecisionLog).summary(call.caller, call.query, server)


async def get_export(request: Request, call: Call) -> None:
    """Send stored decisions as a Parquet file, as CSV or as a folder of ``datasets``."""
    query: wire.ExportDecisionsQuery = call.query
    pieces = await call.service(DecisionLog).export(call.caller, query)
    await send_stream(request, pieces, MEDIA_TYPES[query.format])


def _errors(metrics: Metrics) -> wire.ServerErrors:
    counts = metrics.count_statuses(_DECIDING)
    n = sum(counts.values())
    refused = sum(count for status, count in counts.items() if 400 <= status < 500)
    failed = sum(count for status, count in counts.items() if status >= 500)
    return wire.ServerErrors(
        since=metrics.started_at,
        requests=n,
        refused=refused,
        failed=failed,
        error_rate=share(failed, n),
    )


_TAGS = ("decisions",)

ROUTES = (
    row(
        "GET /v1/decisions/log",
        DecisionLog.page,
        "Page the stored answers, the newest first, with what came true.",
        access=Access.KEYED,
        tags=_TAGS,
    ),
    Route(
        method="GET",
        path="/v1/decisions/log/export",
        handler=get_export,
        summary="Export the stored decisions as Parquet, CSV or a folder of Hugging Face datasets.",
        access=Access.KEYED,
        tags=_TAGS,
        query=wire.ExportDecisionsQuery,
        media_type=MEDIA_TYPES["parquet"],
        also_answers=("text/csv", MEDIA_TYPES["hf"]),
    ),
    row(
        "GET /v1/decisions/log/{decision}",
        DecisionLog.get,
        "Return a stored answer in full: what was asked, answered and observed.",
        access=Access.KEYED,
        tags=_TAGS,
    ),
    Route(
        method="GET",
        path="/v1/decisions/summary",
        handler=get_summary,
        summary="Sum up the stored answers of a window: rates, accuracy on feedback, latency.",
        access=Access.KEYED,
        tags=_TAGS,
        query=wire.DecisionSummaryQuery,
        response=wire.DecisionSummary,
    ),
    row(
        "GET /v1/decisions/series",
        DecisionLog.series,
        "Return figures of the stored answers over time, a point for each hour or day.",
        access=Access.KEYED,
        tags=_TAGS,
    ),
)

FEEDBACK_ROUTES = (
    row(
        "POST /v1/feedback",
        FeedbackService.record,
        "Record what really happened, for decisions that were stored.",
        access=Access.KEYED,
        tags=("decide",),
        errors=(IdempotencyConflictError, RequestInProgressError),
    ),
)
