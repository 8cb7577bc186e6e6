"""``/v1/datasets``: datasets made, listed, changed and deleted; their rows are beside this."""

from __future__ import annotations

from typing import Any

from sanic import HTTPResponse, Request

from steelyard.api.bodies import JSON, json_response, read_bytes, read_json_bytes, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.queries import read_query
from steelyard.api.routing import Access, Form, Route
from steelyard.api.uploads import CSV, FIELD_HEADERS, MULTIPART, NDJSON, receive_upload
from steelyard.errors import (
    DatasetArchivedError,
    DatasetChangedError,
    DatasetDeletedError,
    DatasetMismatchError,
    EvaluationOnlyError,
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    InvalidCsvError,
    InvalidExampleError,
    NoNewRowsError,
    NoRowsError,
    NotFoundError,
    PriceChangedError,
    SideConflictError,
    SteelyardError,
    StorageAllowanceError,
    SupervisionMismatchError,
    TaskMismatchError,
    TooFewRowsError,
    TooManyLinesError,
    TooManyRowsError,
    VersionInUseError,
)
from steelyard.wire.dataset_queries import AddRowsQuery, CreateQuery, DatasetsQuery
from steelyard.wire.datasets import (
    MAX_FRACTION,
    MIN_FRACTION,
    AddRows,
    CreateDataset,
    Dataset,
    DatasetCheck,
    DatasetPage,
    DatasetVersions,
    DeletedDataset,
    LabelsToCheck,
    RenameDataset,
    RestoreDataset,
)
from steelyard.wire.feedback_rows import DatasetFromFeedback, RowsFromFeedback

TAGS = ("datasets",)
_CREATE_FIELDS = ("name", "evaluation_fraction", "max_price_usd")
_ADD_FIELDS = ("evaluation_fraction", "max_price_usd", "family")
_CREATE, _UPLOAD = "POST /v1/datasets", "POST /v1/datasets/upload"
_ADD = "POST /v1/datasets/{dataset}/versions"
_ADD_UPLOAD = "POST /v1/datasets/{dataset}/versions/upload"


async def post_dataset(request: Request) -> HTTPResponse:
    """Make a dataset of rows in any form."""
    return await _create(request, (JSON, MULTIPART, NDJSON), _CREATE)


async def post_upload(request: Request) -> HTTPResponse:
    """Make a dataset of a file, as older clients send it."""
    return await _create(request, (NDJSON,), _UPLOAD)


async def post_version(request: Request) -> HTTPResponse:
    """Add rows in any form."""
    return await _add(request, (JSON, MULTIPART, NDJSON, CSV), _ADD)


async def post_version_upload(request: Request) -> HTTPResponse:
    """Add the rows of a file, as older clients send it."""
    return await _add(request, (NDJSON, CSV), _ADD_UPLOAD)


async def post_from_feedback(request: Request) -> HTTPResponse:
    """Make rows of stored decisions that got feedback."""
    body = await read_json_bytes(request)
    rows = services_of(request).feedback_rows
    return reply_response(await rows.to_dataset(caller_of(request), body, key_of(request)))


async def post_check(request: Request) -> HTTPResponse:
    """Check rows without storing them."""
    read_query(request, AddRowsQuery)
    with await receive_upload(request, (JSON, MULTIPART, NDJSON), _ADD_FIELDS) as upload:
        return json_response(await services_of(request).datasets.check(upload))


async def get_datasets(request: Request) -> HTTPResponse:
    """Give a page of the account's datasets."""
    query = read_query(request, DatasetsQuery)
    page = await services_of(request).datasets.page(
        caller_of(request), archived=query.archived, limit=query.limit, cursor=query.cursor
    )
    return json_response(page)


async def get_dataset(request: Request) -> HTTPResponse:
    """Give one dataset."""
    dataset = await services_of(request).datasets.get(caller_of(request), dataset_of(request))
    return json_response(dataset)


async def patch_dataset(request: Request) -> HTTPResponse:
    """Rename a dataset."""
    body = await read_json_bytes(request)
    return reply_response(
        await services_of(request).datasets.rename(
            caller_of(request), dataset_of(request), body, key_of(request)
        )
    )


async def delete_dataset(request: Request) -> HTTPResponse:
    """Delete a dataset for good."""
    await read_bytes(request)
    return reply_response(
        await services_of(request).datasets.delete(
            caller_of(request), dataset_of(request), key_of(request)
        )
    )


async def post_restore(request: Request) -> HTTPResponse:
    """Take a dataset out of the archive."""
    body = await read_bytes(request)
    return reply_response(
        await services_of(request).datasets.restore(
            caller_of(request), dataset_of(request), body, key_of(request)
        )
    )


async def get_versions(request: Request) -> HTTPResponse:
    """Give every version."""
    return json_response(
        await services_of(request).datasets.versions(caller_of(request), dataset_of(request))
    )


async def get_labels_to_check(request: Request) -> HTTPResponse:
    """Give the labels that prompt tuning doubted."""
    return json_response(
        await services_of(request).datasets.labels_to_check(caller_of(request), dataset_of(request))
    )


def dataset_of(request: Request) -> str:
    """Give the dataset that the address names."""
    dataset_id: str = request.match_info["dataset"]
    return dataset_id


async def _create(request: Request, media_types: tuple[str, ...], route: str) -> HTTPResponse:
    read_query(request, CreateQuery)
    with await receive_upload(request, media_types, _CREATE_FIELDS) as upload:
        datasets = services_of(request).datasets
        reply = await datasets.create(caller_of(request), upload, key_of(request), route=route)
    return reply_response(reply)


async def _add(request: Request, media_types: tuple[str, ...], route: str) -> HTTPResponse:
    read_query(request, AddRowsQuery)
    with await receive_upload(request, media_types, _ADD_FIELDS) as upload:
        reply = await services_of(request).datasets.add_rows(
            caller_of(request), dataset_of(request), upload, key_of(request), route=route
        )
    return reply_response(reply)


_FRACTION = {"type": "number", "minimum": MIN_FRACTION, "maximum": MAX_FRACTION}
_ROWS = {"type": "string", "description": "One row a line, as the items of `examples`."}
_TABLE = {
    "type": "string",
    "description": "A first line of `context` and decision ids, then cells that name the right "
    "outcome; a blank one leaves its decision out.",
}


def _text_schema(name: str) -> dict[str, Any]:
    """Describe a field of the body that is sent as a text."""
    return _FRACTION if name == "evaluation_fraction" else {"type": "string"}


def _form_of(*names: str) -> Form:
    """Describe a multipart form: texts by the body's names, and files of rows."""
    files = dict.fromkeys(("examples", "training", "evaluation"), _ROWS)
    properties = {**{name: _text_schema(name) for name in names}, **files}
    return Form(
        MULTIPART, {"type": "object", "properties": properties, "additionalProperties": False}
    )


def _headers_of(*names: str) -> tuple[dict[str, Any], ...]:
    """Describe the headers that stand for fields beside a body of rows alone."""
    return tuple(
        {
            "name": header,
            "in": "header",
            "description": f"`{field}`, beside rows alone"
            + ("; percent-encoded." if is_encoded else "."),
            "schema": _text_schema(field),
        }
        for header, (field, is_encoded) in FIELD_HEADERS.items()
        if field in names
    )


READ_ERRORS: tuple[type[SteelyardError], ...] = (NotFoundError, DatasetDeletedError)
_KEY_ERRORS = (IdempotencyConflictError, IdempotencyResponseExpiredError)
_ROWS_ERRORS = (
    PriceChangedError,
    StorageAllowanceError,
    TooManyLinesError,
    TooManyRowsError,
    NoRowsError,
    InvalidExampleError,
    SupervisionMismatchError,
    SideConflictError,
    TooFewRowsError,
    *_KEY_ERRORS,
)
_ADD_ERRORS = (
    *READ_ERRORS,
    DatasetArchivedError,
    DatasetChangedError,
    NoNewRowsError,
    TaskMismatchError,
    EvaluationOnlyError,
    InvalidCsvError,
    *_ROWS_ERRORS,
)
_VERSION_ERRORS = (*_ADD_ERRORS, DatasetMismatchError)

ROUTES = (
    Route(
        method="POST",
        path="/v1/datasets",
        handler=post_dataset,
        summary="Make a dataset: its rows are checked, hashed and given a side.",
        access=Access.KEYED,
        tags=TAGS,
        request=CreateDataset,
        forms=(_form_of(*_CREATE_FIELDS), Form(NDJSON, _ROWS)),
        headers=_headers_of(*_CREATE_FIELDS),
        query=CreateQuery,
        response=Dataset,
        errors=_ROWS_ERRORS,
        max_body="upload",
    ),
    Route(
        method="GET",
        path="/v1/datasets",
        handler=get_datasets,
        summary="Page the account's datasets, the most recently used first.",
        access=Access.KEYED,
        tags=TAGS,
        query=DatasetsQuery,
        response=DatasetPage,
    ),
    Route(
        method="POST",
        path="/v1/datasets/upload",
        handler=post_upload,
        summary="Make a dataset of a file of JSON Lines, as older clients send it.",
        access=Access.KEYED,
        tags=TAGS,
        forms=(Form(NDJSON, _ROWS),),
        headers=_headers_of(*_CREATE_FIELDS),
        query=CreateQuery,
        response=Dataset,
        errors=_ROWS_ERRORS,
        max_body="upload",
    ),
    Route(
        method="POST",
        path="/v1/datasets/check",
        handler=post_check,
        summary="Check rows as making a dataset of them would, and store nothing.",
        access=Access.KEYED,
        tags=TAGS,
        request=AddRows,
        forms=(_form_of(*_ADD_FIELDS), Form(NDJSON, _ROWS)),
        headers=_headers_of(*_ADD_FIELDS),
        query=AddRowsQuery,
        response=DatasetCheck,
        max_body="upload",
    ),
    Route(
        method="POST",
        path="/v1/datasets/from-feedback",
        handler=post_from_feedback,
        summary="Make rows of stored decisions that got feedback: a dataset of them, or a version.",
        access=Access.KEYED,
        tags=TAGS,
        request=RowsFromFeedback,
        response=DatasetFromFeedback,
        errors=_ADD_ERRORS,
    ),
    Route(
        method="GET",
        path="/v1/datasets/{dataset}",
        handler=get_dataset,
        summary="Give one dataset, and what prompt tuning can tune in it.",
        access=Access.KEYED,
        tags=TAGS,
        response=Dataset,
        errors=READ_ERRORS,
    ),
    Route(
        method="PATCH",
        path="/v1/datasets/{dataset}",
        handler=patch_dataset,
        summary="Rename a dataset; nothing else changes.",
        access=Access.KEYED,
        tags=TAGS,
        request=RenameDataset,
        response=Dataset,
        errors=(*READ_ERRORS, *_KEY_ERRORS),
    ),
    Route(
        method="DELETE",
        path="/v1/datasets/{dataset}",
        handler=delete_dataset,
        summary="Delete a dataset with every version and all rows, for good.",
        access=Access.KEYED,
        tags=TAGS,
        response=DeletedDataset,
        errors=(*READ_ERRORS, VersionInUseError, *_KEY_ERRORS),
    ),
    Route(
        method="POST",
        path="/v1/datasets/{dataset}/restore",
        handler=post_restore,
        summary="Take a dataset out of the archive.",
        access=Access.KEYED,
        tags=TAGS,
        request=RestoreDataset,
        response=Dataset,
        errors=(*READ_ERRORS, PriceChangedError, *_KEY_ERRORS),
    ),
    Route(
        method="POST",
        path="/v1/datasets/{dataset}/versions",
        handler=post_version,
        summary="Add rows as the next version; the versions before it stay as they are.",
        access=Access.KEYED,
        tags=TAGS,
        request=AddRows,
        forms=(_form_of(*_ADD_FIELDS), Form(NDJSON, _ROWS), Form(CSV, _TABLE)),
        headers=_headers_of(*_ADD_FIELDS),
        query=AddRowsQuery,
        response=Dataset,
        errors=_VERSION_ERRORS,
        max_body="upload",
    ),
    Route(
        method="GET",
        path="/v1/datasets/{dataset}/versions",
        handler=get_versions,
        summary="List every version, the newest first.",
        access=Access.KEYED,
        tags=TAGS,
        response=DatasetVersions,
        errors=READ_ERRORS,
    ),
    Route(
        method="POST",
        path="/v1/datasets/{dataset}/versions/upload",
        handler=post_version_upload,
        summary="Add the rows of a file of JSON Lines or CSV, as older clients send it.",
        access=Access.KEYED,
        tags=TAGS,
        forms=(Form(NDJSON, _ROWS), Form(CSV, _TABLE)),
        headers=_headers_of(*_ADD_FIELDS),
        query=AddRowsQuery,
        response=Dataset,
        errors=_VERSION_ERRORS,
        max_body="upload",
    ),
    Route(
        method="GET",
        path="/v1/datasets/{dataset}/labels-to-check",
        handler=get_labels_to_check,
        summary="List the labels that prompt tuning doubted and nobody dismissed.",
        access=Access.KEYED,
        tags=TAGS,
        response=LabelsToCheck,
        errors=READ_ERRORS,
    ),
)
