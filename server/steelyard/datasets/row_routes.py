"""The rows of datasets: pages and downloads, and what the workbench and notebooks ask of them."""

from __future__ import annotations

from sanic import Request

from steelyard.datasets.filters import Facets
from steelyard.datasets.queries_wire import DiffQuery, ExportQuery, RowsQuery, VersionQuery
from steelyard.datasets.routes import READ_ERRORS, route
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.searches import (
    FoundRows,
    FoundSimilar,
    SearchRows,
    SimilarRows,
    VersionDiff,
    read_search,
    read_similar,
)
from steelyard.datasets.upload_bodies import NDJSON
from steelyard.datasets.wire import RowPage
from steelyard.errors import TooManyRowsError
from steelyard.http.bodies import send_stream
from steelyard.http.routing import Call

PARQUET = "application/vnd.apache.parquet"


async def get_download(request: Request, call: Call) -> None:
    """Send every row as JSON Lines."""
    query: VersionQuery = call.query
    pieces = await call.service(DatasetRows).download(
        call.caller, call.path["dataset"], query.partition, query.version
    )
    await send_stream(request, pieces, NDJSON)


async def get_export(request: Request, call: Call) -> None:
    """Send every row as a Parquet file."""
    query: ExportQuery = call.query
    pieces = await call.service(DatasetRows).export(
        call.caller, call.path["dataset"], query.partition, query.version
    )
    await send_stream(request, pieces, PARQUET)


ROUTES = (
    route(
        method="GET",
        path="/v1/datasets/{dataset}/rows",
        use=lambda call: call.service(DatasetRows).page(
            call.caller, call.path["dataset"], call.query
        ),
        summary="Page a version's rows, as they are trained on.",
        query=RowsQuery,
        response=RowPage,
        errors=READ_ERRORS,
    ),
    route(
        method="GET",
        path="/v1/datasets/{dataset}/download",
        handler=get_download,
        summary="Download a version's rows as JSON Lines, the same bytes for ever.",
        query=VersionQuery,
        errors=READ_ERRORS,
        media_type=NDJSON,
    ),
    route(
        method="POST",
        path="/v1/datasets/{dataset}/rows/search",
        use=lambda call: call.service(DatasetRows).search(
            call.caller, call.path["dataset"], call.body
        ),
        summary="Find rows by their labels, texts, sides and places, in an order.",
        request=SearchRows,
        read=read_search,
        response=FoundRows,
        errors=READ_ERRORS,
    ),
    route(
        method="POST",
        path="/v1/datasets/{dataset}/rows/similar",
        use=lambda call: call.service(DatasetRows).similar(
            call.caller, call.path["dataset"], call.body
        ),
        summary="Find the rows whose contexts are most like a row's, or like another context.",
        request=SimilarRows,
        read=read_similar,
        response=FoundSimilar,
        errors=(*READ_ERRORS, TooManyRowsError),
    ),
    route(
        method="GET",
        path="/v1/datasets/{dataset}/facets",
        use=lambda call: call.service(DatasetRows).facets(
            call.caller, call.path["dataset"], call.query
        ),
        summary="Count how a version's rows spread over sides and expected outcomes.",
        query=VersionQuery,
        response=Facets,
        errors=READ_ERRORS,
    ),
    route(
        method="GET",
        path="/v1/datasets/{dataset}/diff",
        use=lambda call: call.service(DatasetRows).diff(
            call.caller, call.path["dataset"], call.query
        ),
        summary="Return what a version adds to an older one, and what it labels otherwise.",
        query=DiffQuery,
        response=VersionDiff,
        errors=READ_ERRORS,
    ),
    route(
        method="GET",
        path="/v1/datasets/{dataset}/export",
        handler=get_export,
        summary="Download a version's rows as a Parquet file.",
        query=ExportQuery,
        errors=READ_ERRORS,
        media_type=PARQUET,
    ),
)
