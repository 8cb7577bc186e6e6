"""``/v1/datasets``: datasets made, listed, changed and deleted; their rows are beside this."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Struct
from sanic import Request

from steelyard import errors
from steelyard.datasets import wire
from steelyard.datasets.bodies import check_fields
from steelyard.datasets.from_feedback import FeedbackRows, read_rows_from_feedback
from steelyard.datasets.from_feedback_wire import DatasetFromFeedback, RowsFromFeedback
from steelyard.datasets.ingesting import read_sent
from steelyard.datasets.parsing import parse
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.searches import read_search, read_similar
from steelyard.datasets.service import DatasetService
from steelyard.datasets.upload_bodies import CSV, FIELD_HEADERS, MULTIPART, NDJSON, receive_upload
from steelyard.errors import TooManyRowsError
from steelyard.exports import MEDIA_TYPES
from steelyard.http.bodies import JSON, send_stream
from steelyard.http.routing import KEY_ERRORS, REVIEWERS, Access, Call, Form, Handler, row
from steelyard.wire.payloads import read_payload

route = partial(row, access=Access.KEYED, tags=("datasets",))
read = partial(route, roles=REVIEWERS)
_CREATE_FIELDS = ("name", "evaluation_fraction", "max_price_usd")
_ADD_FIELDS = ("evaluation_fraction", "max_price_usd", "family")


def _create(*media_types: str) -> Handler:
    async def create(request: Request, call: Call) -> Struct:
        with await receive_upload(request, media_types, _CREATE_FIELDS) as upload:
            sent = await parse(call.caller.account_id, read_sent, upload, wire.CreateDataset)
            with call.reading_stored():
                return await call.service(DatasetService).create(sent.named(call.write), sent)

    return create


def _add(*media_types: str) -> Handler:
    async def add(request: Request, call: Call) -> Struct:
        dataset_id = call.path["dataset"]
        with await receive_upload(request, media_types, _ADD_FIELDS) as upload:
            sent = await parse(
                call.caller.account_id, read_sent, upload, wire.AddRows, dataset_id=dataset_id
            )
            datasets = call.service(DatasetService)
            with call.reading_stored():
                return await datasets.add_rows(sent.named(call.write), dataset_id, sent)

    return add


async def post_check(request: Request, call: Call) -> Struct:
    """Check rows without storing them."""
    with await receive_upload(request, (JSON, MULTIPART, NDJSON), _ADD_FIELDS) as upload:
        sent = await parse(call.caller.account_id, read_sent, upload, wire.AddRows)
        with call.reading_stored():
            return await call.service(DatasetService).check(call.caller, sent)


_FRACTION = {"type": "number", "minimum": wire.MIN_FRACTION, "maximum": wire.MAX_FRACTION}
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


READ_ERRORS: tuple[type[errors.SteelyardError], ...] = (errors.DatasetDeletedError,)
LABEL_ERRORS = (*READ_ERRORS, errors.RowsLabelledApartError)
_ROWS_ERRORS = (
    errors.PriceChangedError,
    errors.StorageAllowanceError,
    errors.TooManyLinesError,
    errors.TooManyRowsError,
    errors.NoRowsError,
    errors.InvalidExampleError,
    errors.SupervisionMismatchError,
    errors.SideConflictError,
    errors.TooFewRowsError,
    *KEY_ERRORS,
)
_ADD_ERRORS = (
    *READ_ERRORS,
    errors.DatasetArchivedError,
    errors.DatasetChangedError,
    errors.NoNewRowsError,
    errors.TaskMismatchError,
    errors.EvaluationOnlyError,
    errors.InvalidCsvError,
    *_ROWS_ERRORS,
)
_VERSION_ERRORS = (*_ADD_ERRORS, errors.DatasetMismatchError)


async def get_download(request: Request, call: Call) -> None:
    """Send every row as JSON Lines."""
    query: wire.VersionQuery = call.query
    pieces = await call.service(DatasetRows).download(
        call.caller, call.path["dataset"], query.partition, query.version
    )
    await send_stream(request, pieces, NDJSON)


async def get_export(request: Request, call: Call) -> None:
    """Send every row as a Parquet file, as CSV or as a folder of ``datasets``."""
    query: wire.ExportQuery = call.query
    pieces = await call.service(DatasetRows).export(call.caller, call.path["dataset"], query)
    await send_stream(request, pieces, MEDIA_TYPES[query.format])


ROUTES = (
    route(
        "POST /v1/datasets",
        handler=_create(JSON, MULTIPART, NDJSON),
        summary="Make a dataset: its rows are checked, hashed and given a side.",
        request=wire.CreateDataset,
        forms=(_form_of(*_CREATE_FIELDS), Form(NDJSON, _ROWS)),
        headers=_headers_of(*_CREATE_FIELDS),
        query=wire.CreateQuery,
        response=wire.Dataset,
        errors=_ROWS_ERRORS,
        max_body="upload",
    ),
    read(
        "GET /v1/datasets",
        DatasetService.page,
        "Page the account's datasets, the most recently used first.",
    ),
    route(
        "POST /v1/datasets/upload",
        handler=_create(NDJSON),
        summary="Make a dataset of a file of JSON Lines, as older clients send it.",
        forms=(Form(NDJSON, _ROWS),),
        headers=_headers_of(*_CREATE_FIELDS),
        query=wire.CreateQuery,
        response=wire.Dataset,
        errors=_ROWS_ERRORS,
        max_body="upload",
    ),
    route(
        "POST /v1/datasets/check",
        handler=post_check,
        summary="Check rows as making a dataset of them would, and store nothing.",
        request=wire.AddRows,
        forms=(_form_of(*_ADD_FIELDS), Form(NDJSON, _ROWS)),
        headers=_headers_of(*_ADD_FIELDS),
        query=wire.AddRowsQuery,
        response=wire.DatasetCheck,
        max_body="upload",
    ),
    route(
        "POST /v1/datasets/from-feedback",
        lambda call: call.service(FeedbackRows).to_dataset(call.write, call.body),
        "Make rows of stored decisions that got feedback: a dataset of them, or a version.",
        request=RowsFromFeedback,
        read=read_rows_from_feedback,
        response=DatasetFromFeedback,
        errors=_ADD_ERRORS,
    ),
    read(
        "GET /v1/datasets/{dataset}",
        DatasetService.get,
        "Return one dataset, and what prompt tuning can tune in it.",
        errors=READ_ERRORS,
    ),
    route(
        "PATCH /v1/datasets/{dataset}",
        DatasetService.rename,
        "Rename a dataset; nothing else changes.",
        read=partial(read_payload, shape=wire.RenameDataset, check=check_fields),
        errors=(*READ_ERRORS, *KEY_ERRORS),
    ),
    route(
        "DELETE /v1/datasets/{dataset}",
        DatasetService.delete,
        "Delete a dataset with every version and all rows, for good.",
        errors=(*READ_ERRORS, errors.VersionInUseError, *KEY_ERRORS),
    ),
    route(
        "POST /v1/datasets/{dataset}/archive",
        DatasetService.archive,
        "Put a dataset into the archive: it is read as before, and takes no new work.",
        request=wire.ArchiveDataset,
        read=partial(read_payload, shape=wire.ArchiveDataset, check=check_fields),
        may_be_empty=True,
        errors=(*READ_ERRORS, *KEY_ERRORS),
    ),
    route(
        "POST /v1/datasets/{dataset}/restore",
        DatasetService.restore,
        "Take a dataset out of the archive.",
        request=wire.RestoreDataset,
        read=partial(read_payload, shape=wire.RestoreDataset, check=check_fields),
        may_be_empty=True,
        errors=(*READ_ERRORS, errors.PriceChangedError, *KEY_ERRORS),
    ),
    route(
        "POST /v1/datasets/{dataset}/versions",
        handler=_add(JSON, MULTIPART, NDJSON, CSV),
        summary="Add rows as the next version; the versions before it stay as they are.",
        request=wire.AddRows,
        forms=(_form_of(*_ADD_FIELDS), Form(NDJSON, _ROWS), Form(CSV, _TABLE)),
        headers=_headers_of(*_ADD_FIELDS),
        query=wire.AddRowsQuery,
        response=wire.Dataset,
        errors=_VERSION_ERRORS,
        max_body="upload",
    ),
    read(
        "GET /v1/datasets/{dataset}/versions",
        DatasetService.versions,
        "List every version, the newest first.",
        errors=READ_ERRORS,
    ),
    route(
        "POST /v1/datasets/{dataset}/versions/upload",
        handler=_add(NDJSON, CSV),
        summary="Add the rows of a file of JSON Lines or CSV, as older clients send it.",
        forms=(Form(NDJSON, _ROWS), Form(CSV, _TABLE)),
        headers=_headers_of(*_ADD_FIELDS),
        query=wire.AddRowsQuery,
        response=wire.Dataset,
        errors=_VERSION_ERRORS,
        max_body="upload",
    ),
    read(
        "GET /v1/datasets/{dataset}/labels-to-check",
        DatasetService.labels_to_check,
        "List the labels that prompt tuning doubted and nobody dismissed.",
        errors=LABEL_ERRORS,
    ),
)

#: Rows of a version.
ROW_ROUTES = (
    read(
        "GET /v1/datasets/{dataset}/rows",
        DatasetRows.page,
        "Page a version's rows, as they are trained on.",
        errors=LABEL_ERRORS,
    ),
    read(
        "GET /v1/datasets/{dataset}/download",
        handler=get_download,
        summary="Download a version's rows as JSON Lines, the same bytes for ever.",
        query=wire.VersionQuery,
        errors=LABEL_ERRORS,
        media_type=NDJSON,
    ),
    read(
        "POST /v1/datasets/{dataset}/rows/search",
        DatasetRows.search,
        "Find rows by their labels, texts, sides and places, in an order.",
        read=read_search,
        errors=LABEL_ERRORS,
    ),
    read(
        "POST /v1/datasets/{dataset}/rows/similar",
        DatasetRows.similar,
        "Find the rows whose contexts are most like a row's, or like another context.",
        read=read_similar,
        errors=(*LABEL_ERRORS, TooManyRowsError),
    ),
    read(
        "GET /v1/datasets/{dataset}/facets",
        DatasetRows.facets,
        "Count how a version's rows spread over sides and expected outcomes.",
        errors=LABEL_ERRORS,
    ),
    read(
        "GET /v1/datasets/{dataset}/diff",
        DatasetRows.diff,
        "Return what a version adds to an older one, and what it labels otherwise.",
        errors=LABEL_ERRORS,
    ),
    read(
        "GET /v1/datasets/{dataset}/export",
        handler=get_export,
        summary="Export a version's rows as Parquet, CSV or a folder of Hugging Face datasets.",
        query=wire.ExportQuery,
        errors=LABEL_ERRORS,
        media_type=MEDIA_TYPES["parquet"],
        also_answers=("text/csv", MEDIA_TYPES["hf"]),
    ),
)
