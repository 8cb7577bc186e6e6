"""``/v1/drafts``: reviews of versions, which become datasets or versions when they are sealed."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import discard_body, json_response, read_json_bytes, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.queries import read_query
from steelyard.api.routing import Access, Route
from steelyard.datasets.draft_requests import BulkEdit, DraftRowsSearch
from steelyard.errors import (
    DatasetArchivedError,
    DatasetChangedError,
    DatasetDeletedError,
    DraftChangedError,
    DraftConflictError,
    DraftSealedError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    NoNewRowsError,
    NoRowsError,
    NotFoundError,
    NothingToUndoError,
    SupervisionMismatchError,
    TooFewRowsError,
)
from steelyard.wire.drafts import (
    CreateDraft,
    DeletedDraft,
    Draft,
    DraftPage,
    DraftRowPage,
    DraftsQuery,
    EditReceipt,
    EditRows,
    History,
    HistoryQuery,
    SealDraft,
    UndoEdit,
)


def _id(request: Request) -> str:
    return str(request.match_info["draft"])


async def post_drafts(request: Request) -> HTTPResponse:
    """Begin a review."""
    body = await read_json_bytes(request)
    drafts = services_of(request).drafts
    return reply_response(await drafts.create(caller_of(request), body, key_of(request)))


async def get_drafts(request: Request) -> HTTPResponse:
    """Give a page of drafts."""
    query = read_query(request, DraftsQuery)
    page = await services_of(request).drafts.page(
        caller_of(request),
        dataset_id=query.dataset_id,
        status=query.status,
        limit=query.limit,
        cursor=query.cursor,
    )
    return json_response(page)


async def get_draft(request: Request) -> HTTPResponse:
    """Give a draft."""
    drafts = services_of(request).drafts
    return json_response(await drafts.get(caller_of(request), _id(request)))


async def delete_draft(request: Request) -> HTTPResponse:
    """Delete a draft."""
    await discard_body(request)
    drafts = services_of(request).drafts
    key = key_of(request)
    return reply_response(await drafts.delete(caller_of(request), _id(request), key))


async def post_edits(request: Request) -> HTTPResponse:
    """Edit rows."""
    body = await read_json_bytes(request)
    drafts = services_of(request).drafts
    key = key_of(request)
    return reply_response(await drafts.edit(caller_of(request), _id(request), body, key))


async def get_edits(request: Request) -> HTTPResponse:
    """Give a page of a draft's log."""
    query = read_query(request, HistoryQuery)
    drafts = services_of(request).drafts
    return json_response(await drafts.history(caller_of(request), _id(request), query))


async def post_bulk(request: Request) -> HTTPResponse:
    """Edit a queue."""
    body = await read_json_bytes(request)
    rows = services_of(request).draft_rows
    key = key_of(request)
    return reply_response(await rows.bulk(caller_of(request), _id(request), body, key))


async def post_undo(request: Request) -> HTTPResponse:
    """Undo an entry."""
    body = await read_json_bytes(request)
    drafts = services_of(request).drafts
    key = key_of(request)
    return reply_response(await drafts.undo(caller_of(request), _id(request), body, key))


async def post_redo(request: Request) -> HTTPResponse:
    """Redo an entry."""
    body = await read_json_bytes(request)
    drafts = services_of(request).drafts
    key = key_of(request)
    return reply_response(await drafts.redo(caller_of(request), _id(request), body, key))


async def post_rows(request: Request) -> HTTPResponse:
    """Give a page of a queue."""
    body = await read_json_bytes(request)
    rows = services_of(request).draft_rows
    return json_response(await rows.page(caller_of(request), _id(request), body))


async def post_seal(request: Request) -> HTTPResponse:
    """Seal a draft."""
    body = await read_json_bytes(request)
    seals = services_of(request).draft_seals
    key = key_of(request)
    return reply_response(await seals.seal(caller_of(request), _id(request), body, key))


_TAGS = ("drafts",)
_FOUND = (NotFoundError, DatasetDeletedError)
_KEYED = (*_FOUND, IdempotencyConflictError, IdempotencyResponseExpiredError)
_EDITED = (*_KEYED, DraftSealedError)

ROUTES = (
    Route(
        method="POST",
        path="/v1/drafts",
        handler=post_drafts,
        summary="Begin a review of a version; the version itself never changes.",
        access=Access.KEYED,
        tags=_TAGS,
        request=CreateDraft,
        response=Draft,
        errors=(*_KEYED, DatasetArchivedError),
    ),
    Route(
        method="GET",
        path="/v1/drafts",
        handler=get_drafts,
        summary="Page the account's drafts, the newest first.",
        access=Access.KEYED,
        tags=_TAGS,
        query=DraftsQuery,
        response=DraftPage,
    ),
    Route(
        method="GET",
        path="/v1/drafts/{draft}",
        handler=get_draft,
        summary="Give a draft, the states of its rows counted.",
        access=Access.KEYED,
        tags=_TAGS,
        response=Draft,
        errors=_FOUND,
    ),
    Route(
        method="DELETE",
        path="/v1/drafts/{draft}",
        handler=delete_draft,
        summary="Delete a draft and its log; what it became stays.",
        access=Access.KEYED,
        tags=_TAGS,
        response=DeletedDraft,
        errors=_KEYED,
    ),
    Route(
        method="POST",
        path="/v1/drafts/{draft}/edits",
        handler=post_edits,
        summary="Edit rows, all of the edits or none; another's newer edit is not overwritten.",
        access=Access.KEYED,
        tags=_TAGS,
        request=EditRows,
        response=EditReceipt,
        errors=(*_EDITED, DraftConflictError),
    ),
    Route(
        method="GET",
        path="/v1/drafts/{draft}/edits",
        handler=get_edits,
        summary="Page a draft's log, the newest entry first; that of one row if asked.",
        access=Access.KEYED,
        tags=_TAGS,
        query=HistoryQuery,
        response=History,
        errors=(NotFoundError,),
    ),
    Route(
        method="POST",
        path="/v1/drafts/{draft}/bulk",
        handler=post_bulk,
        summary="Edit every row of a queue that a filter holds for: one entry, one undo.",
        access=Access.KEYED,
        tags=_TAGS,
        request=BulkEdit,
        response=EditReceipt,
        errors=(*_EDITED, DraftChangedError, SupervisionMismatchError),
    ),
    Route(
        method="POST",
        path="/v1/drafts/{draft}/undo",
        handler=post_undo,
        summary="Undo the reviewer's own last entry, or those named; what others did stays.",
        access=Access.KEYED,
        tags=_TAGS,
        request=UndoEdit,
        response=EditReceipt,
        errors=(*_EDITED, NothingToUndoError, DraftChangedError),
    ),
    Route(
        method="POST",
        path="/v1/drafts/{draft}/redo",
        handler=post_redo,
        summary="Redo what the reviewer undid last, or the entries named.",
        access=Access.KEYED,
        tags=_TAGS,
        request=UndoEdit,
        response=EditReceipt,
        errors=(*_EDITED, NothingToUndoError, DraftChangedError),
    ),
    Route(
        method="POST",
        path="/v1/drafts/{draft}/rows",
        handler=post_rows,
        summary="Page a queue of a draft's rows as they stand now, with every queue counted.",
        access=Access.KEYED,
        tags=_TAGS,
        request=DraftRowsSearch,
        response=DraftRowPage,
        errors=_FOUND,
    ),
    Route(
        method="POST",
        path="/v1/drafts/{draft}/seal",
        handler=post_seal,
        summary="Make a draft a new dataset, or the next version of its own.",
        access=Access.KEYED,
        tags=_TAGS,
        request=SealDraft,
        response=Draft,
        errors=(
            *_EDITED,
            DraftChangedError,
            DatasetChangedError,
            DatasetArchivedError,
            NoNewRowsError,
            NoRowsError,
            TooFewRowsError,
        ),
    ),
)
