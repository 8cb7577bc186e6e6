"""``/v1/fine-tuning/jobs``: the fine-tunes of families, their events and their held-out records."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import discard_body, json_response, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.queries import read_query
from steelyard.api.routing import Access, Route
from steelyard.errors import (
    DatasetDeletedError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    NotFoundError,
)
from steelyard.wire.evaluations import JobRecordPage
from steelyard.wire.fine_tuning import Job, JobEvents, JobPage
from steelyard.wire.fine_tuning_queries import JobRecordsQuery, JobsQuery


async def get_jobs(request: Request) -> HTTPResponse:
    """Give a page of the account's fine-tunes."""
    query = read_query(request, JobsQuery)
    page = await services_of(request).fine_tunes.page(
        caller_of(request),
        statuses=query.status,
        dataset_id=query.dataset_id,
        limit=query.limit,
        cursor=query.cursor,
    )
    return json_response(page)


async def get_job(request: Request) -> HTTPResponse:
    """Give one fine-tune."""
    fine_tunes = services_of(request).fine_tunes
    return json_response(await fine_tunes.get(caller_of(request), _id(request)))


async def get_events(request: Request) -> HTTPResponse:
    """Give everything that happened to a fine-tune."""
    fine_tunes = services_of(request).fine_tunes
    return json_response(await fine_tunes.events(caller_of(request), _id(request)))


async def get_records(request: Request) -> HTTPResponse:
    """Give a page of a fine-tune's held-out records."""
    query = read_query(request, JobRecordsQuery)
    page = await services_of(request).fine_tunes.records(
        caller_of(request),
        _id(request),
        group=query.group,
        offset=query.offset,
        limit=query.limit,
    )
    return json_response(page)


async def post_cancel(request: Request) -> HTTPResponse:
    """Ask a fine-tune to stop."""
    await discard_body(request)
    fine_tunes = services_of(request).fine_tunes
    return reply_response(
        await fine_tunes.cancel(caller_of(request), _id(request), key_of(request))
    )


def _id(request: Request) -> str:
    return str(request.match_info["job"])


_TAGS = ("fine-tuning",)

ROUTES = (
    Route(
        method="GET",
        path="/v1/fine-tuning/jobs",
        handler=get_jobs,
        summary="Page the account's fine-tunes, the newest first.",
        access=Access.KEYED,
        tags=_TAGS,
        query=JobsQuery,
        response=JobPage,
    ),
    Route(
        method="GET",
        path="/v1/fine-tuning/jobs/{job}",
        handler=get_job,
        summary="Give a fine-tune: how far it is, then its outcome, its gate and its curve.",
        access=Access.KEYED,
        tags=_TAGS,
        response=Job,
        errors=(NotFoundError,),
    ),
    Route(
        method="GET",
        path="/v1/fine-tuning/jobs/{job}/events",
        handler=get_events,
        summary="List everything that happened to a fine-tune, the oldest first.",
        access=Access.KEYED,
        tags=_TAGS,
        response=JobEvents,
        errors=(NotFoundError,),
    ),
    Route(
        method="GET",
        path="/v1/fine-tuning/jobs/{job}/records",
        handler=get_records,
        summary="Page the held-out decisions as the new model, its base or its parent scored them.",
        access=Access.KEYED,
        tags=_TAGS,
        query=JobRecordsQuery,
        response=JobRecordPage,
        errors=(NotFoundError, DatasetDeletedError),
    ),
    Route(
        method="POST",
        path="/v1/fine-tuning/jobs/{job}/cancel",
        handler=post_cancel,
        summary="Ask a fine-tune to stop; one that has ended is given as it is.",
        access=Access.KEYED,
        tags=_TAGS,
        response=Job,
        errors=(NotFoundError, IdempotencyConflictError, IdempotencyResponseExpiredError),
    ),
)
