"""``/v1/evaluations``: models scored on a dataset's evaluation rows, and what was measured."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import discard_body, json_response, read_json_bytes, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.queries import read_query
from steelyard.api.routes.decide import UNCALLABLE
from steelyard.api.routing import Access, Route
from steelyard.errors import (
    DatasetArchivedError,
    DatasetDeletedError,
    EvaluationNotReadyError,
    EvaluationNotRetryableError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    ModelUnavailableError,
    NotFoundError,
    NotMeasurableError,
    QueueFullError,
    SupervisionMismatchError,
    TenantQueueFullError,
    TooFewRowsError,
)
from steelyard.services.reply import Reply
from steelyard.wire.evaluations import (
    ComparisonQuery,
    CostCurve,
    CostTrial,
    CreateEvaluation,
    Evaluation,
    EvaluationComparison,
    EvaluationDetail,
    EvaluationPage,
    EvaluationRecordPage,
    EvaluationsQuery,
    EvaluationSubmission,
    PolicyReport,
    PolicyTrial,
    RecordsQuery,
)


def _id(request: Request) -> str:
    return str(request.match_info["evaluation"])


async def post_evaluations(request: Request) -> HTTPResponse:
    """Queue evaluations."""
    body = await read_json_bytes(request)
    evaluations = services_of(request).evaluations
    return reply_response(await evaluations.create(caller_of(request), body, key_of(request)))


async def get_evaluations(request: Request) -> HTTPResponse:
    """Give a page of a dataset's evaluations."""
    query = read_query(request, EvaluationsQuery)
    page = await services_of(request).evaluations.page(
        caller_of(request),
        query.dataset_id,
        statuses=query.status,
        limit=query.limit,
        cursor=query.cursor,
    )
    return json_response(page)


async def get_evaluation(request: Request) -> HTTPResponse:
    """Give an evaluation."""
    evaluations = services_of(request).evaluations
    return json_response(await evaluations.get(caller_of(request), _id(request)))


async def post_cancel(request: Request) -> HTTPResponse:
    """Stop an evaluation."""
    await discard_body(request)
    evaluations = services_of(request).evaluations
    key = key_of(request)
    return reply_response(await evaluations.cancel(caller_of(request), _id(request), key))


async def post_retry(request: Request) -> HTTPResponse:
    """Take an evaluation up again."""
    await discard_body(request)
    evaluations = services_of(request).evaluations
    key = key_of(request)
    return reply_response(await evaluations.retry(caller_of(request), _id(request), key))


async def get_detail(request: Request) -> HTTPResponse:
    """Give everything measured."""
    figures = services_of(request).evaluation_figures
    return reply_response(Reply(await figures.detail(caller_of(request), _id(request))))


async def get_records(request: Request) -> HTTPResponse:
    """Give a page of scored decisions."""
    query = read_query(request, RecordsQuery)
    figures = services_of(request).evaluation_figures
    return json_response(await figures.records(caller_of(request), _id(request), query))


async def get_comparison(request: Request) -> HTTPResponse:
    """Compare two evaluations."""
    query = read_query(request, ComparisonQuery)
    figures = services_of(request).evaluation_figures
    return json_response(await figures.compare(caller_of(request), query.before, query.after))


async def post_policy(request: Request) -> HTTPResponse:
    """Try a policy."""
    body = await read_json_bytes(request)
    figures = services_of(request).evaluation_figures
    return json_response(await figures.try_policy(caller_of(request), _id(request), body))


async def post_costs(request: Request) -> HTTPResponse:
    """Draw a curve of costs."""
    body = await read_json_bytes(request)
    figures = services_of(request).evaluation_figures
    return json_response(await figures.cost_curve(caller_of(request), _id(request), body))


_TAGS = ("evaluations",)
_KEYED = (NotFoundError, IdempotencyConflictError, IdempotencyResponseExpiredError)
_FULL = (TenantQueueFullError, QueueFullError)
_FOUND = (NotFoundError, DatasetDeletedError, EvaluationNotReadyError)
_MEASURED = (*_FOUND, NotMeasurableError, SupervisionMismatchError)

ROUTES = (
    Route(
        method="POST",
        path="/v1/evaluations",
        handler=post_evaluations,
        summary="Score models on a dataset's evaluation rows; what was scored already is reused.",
        access=Access.KEYED,
        tags=_TAGS,
        request=CreateEvaluation,
        response=EvaluationSubmission,
        errors=(
            *_KEYED,
            *_FULL,
            *UNCALLABLE,
            DatasetArchivedError,
            DatasetDeletedError,
            TooFewRowsError,
        ),
    ),
    Route(
        method="GET",
        path="/v1/evaluations",
        handler=get_evaluations,
        summary="Page a dataset's evaluations, the newest first.",
        access=Access.KEYED,
        tags=_TAGS,
        query=EvaluationsQuery,
        response=EvaluationPage,
    ),
    Route(
        method="GET",
        path="/v1/evaluations/compare",
        handler=get_comparison,
        summary="Compare two evaluations on the decisions that both scored, with every flip.",
        access=Access.KEYED,
        tags=_TAGS,
        query=ComparisonQuery,
        response=EvaluationComparison,
        errors=_MEASURED,
    ),
    Route(
        method="GET",
        path="/v1/evaluations/{evaluation}",
        handler=get_evaluation,
        summary="Give an evaluation: how far it is, and its metrics once it has succeeded.",
        access=Access.KEYED,
        tags=_TAGS,
        response=Evaluation,
        errors=(NotFoundError,),
    ),
    Route(
        method="POST",
        path="/v1/evaluations/{evaluation}/cancel",
        handler=post_cancel,
        summary="Stop an evaluation; its predictions are kept.",
        access=Access.KEYED,
        tags=_TAGS,
        response=Evaluation,
        errors=_KEYED,
    ),
    Route(
        method="POST",
        path="/v1/evaluations/{evaluation}/retry",
        handler=post_retry,
        summary="Take up an evaluation that failed or was cancelled, from what it has scored.",
        access=Access.KEYED,
        tags=_TAGS,
        response=Evaluation,
        errors=(
            *_KEYED,
            *_FULL,
            DatasetArchivedError,
            DatasetDeletedError,
            EvaluationNotRetryableError,
            ModelUnavailableError,
        ),
    ),
    Route(
        method="GET",
        path="/v1/evaluations/{evaluation}/detail",
        handler=get_detail,
        summary="Give every measure by decision, outcome and slice, with n and 95 % intervals.",
        access=Access.KEYED,
        tags=_TAGS,
        response=EvaluationDetail,
        errors=_FOUND,
    ),
    Route(
        method="GET",
        path="/v1/evaluations/{evaluation}/records",
        handler=get_records,
        summary="Page the scored decisions: all, or those behind a figure, with their contexts.",
        access=Access.KEYED,
        tags=_TAGS,
        query=RecordsQuery,
        response=EvaluationRecordPage,
        errors=(*_FOUND, NotMeasurableError),
    ),
    Route(
        method="POST",
        path="/v1/evaluations/{evaluation}/policy",
        handler=post_policy,
        summary="Say what a policy would have done on the scored decisions.",
        access=Access.KEYED,
        tags=_TAGS,
        request=PolicyTrial,
        response=PolicyReport,
        errors=_MEASURED,
    ),
    Route(
        method="POST",
        path="/v1/evaluations/{evaluation}/costs",
        handler=post_costs,
        summary="Give the mean cost of acting by threshold.",
        access=Access.KEYED,
        tags=_TAGS,
        request=CostTrial,
        response=CostCurve,
        errors=_MEASURED,
    ),
)
