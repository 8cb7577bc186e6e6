"""The rows of datasets: pages and downloads, and what the workbench and notebooks ask of them."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response, read_json_bytes, reply_response, send_stream
from steelyard.api.callers import caller_of, services_of
from steelyard.api.queries import read_query
from steelyard.api.routes.datasets import READ_ERRORS, TAGS, dataset_of
from steelyard.api.routing import Access, Route
from steelyard.api.uploads import NDJSON
from steelyard.datasets.filters import Facets
from steelyard.datasets.searches import (
    FoundRows,
    FoundSimilar,
    SearchRows,
    SimilarRows,
    VersionDiff,
)
from steelyard.errors import TooManyRowsError
from steelyard.services.reply import Reply
from steelyard.wire.dataset_queries import DiffQuery, ExportQuery, RowsQuery, VersionQuery
from steelyard.wire.datasets import RowPage

PARQUET = "application/vnd.apache.parquet"


async def get_rows(request: Request) -> HTTPResponse:
    """Give a page of rows."""
    query = read_query(request, RowsQuery)
    rows = services_of(request).dataset_rows
    return _encoded(await rows.page(caller_of(request), dataset_of(request), query))


async def get_download(request: Request) -> None:
    """Send every row as JSON Lines."""
    query = read_query(request, VersionQuery)
    pieces = await services_of(request).dataset_rows.download(
        caller_of(request), dataset_of(request), query.partition, query.version
    )
    await send_stream(request, pieces, NDJSON)


async def get_export(request: Request) -> None:
    """Send every row as a Parquet file."""
    query = read_query(request, ExportQuery)
    pieces = await services_of(request).dataset_rows.export(
        caller_of(request), dataset_of(request), query.partition, query.version
    )
    await send_stream(request, pieces, PARQUET)


async def post_search(request: Request) -> HTTPResponse:
    """Find rows."""
    body = await read_json_bytes(request)
    rows = services_of(request).dataset_rows
    return _encoded(await rows.search(caller_of(request), dataset_of(request), body))


async def post_similar(request: Request) -> HTTPResponse:
    """Find rows that are alike."""
    body = await read_json_bytes(request)
    rows = services_of(request).dataset_rows
    return _encoded(await rows.similar(caller_of(request), dataset_of(request), body))


async def get_facets(request: Request) -> HTTPResponse:
    """Count how rows spread."""
    query = read_query(request, VersionQuery)
    return json_response(
        await services_of(request).dataset_rows.facets(
            caller_of(request), dataset_of(request), query.partition, query.version
        )
    )


async def get_diff(request: Request) -> HTTPResponse:
    """Compare two versions."""
    query = read_query(request, DiffQuery)
    return json_response(
        await services_of(request).dataset_rows.diff(caller_of(request), dataset_of(request), query)
    )


def _encoded(body: bytes) -> HTTPResponse:
    return reply_response(Reply(body))


ROUTES = (
    Route(
        method="GET",
        path="/v1/datasets/{dataset}/rows",
        handler=get_rows,
        summary="Page a version's rows, as they are trained on.",
        access=Access.KEYED,
        tags=TAGS,
        query=RowsQuery,
        response=RowPage,
        errors=READ_ERRORS,
    ),
    Route(
        method="GET",
        path="/v1/datasets/{dataset}/download",
        handler=get_download,
        summary="Download a version's rows as JSON Lines, the same bytes for ever.",
        access=Access.KEYED,
        tags=TAGS,
        query=VersionQuery,
        errors=READ_ERRORS,
        media_type=NDJSON,
    ),
    Route(
        method="POST",
        path="/v1/datasets/{dataset}/rows/search",
        handler=post_search,
        summary="Find rows by their labels, texts, sides and places, in an order.",
        access=Access.KEYED,
        tags=TAGS,
        request=SearchRows,
        response=FoundRows,
        errors=READ_ERRORS,
    ),
    Route(
        method="POST",
        path="/v1/datasets/{dataset}/rows/similar",
        handler=post_similar,
        summary="Find the rows whose contexts are most like a row's, or like another context.",
        access=Access.KEYED,
        tags=TAGS,
        request=SimilarRows,
        response=FoundSimilar,
        errors=(*READ_ERRORS, TooManyRowsError),
    ),
    Route(
        method="GET",
        path="/v1/datasets/{dataset}/facets",
        handler=get_facets,
        summary="Count how a version's rows spread over sides and expected outcomes.",
        access=Access.KEYED,
        tags=TAGS,
        query=VersionQuery,
        response=Facets,
        errors=READ_ERRORS,
    ),
    Route(
        method="GET",
        path="/v1/datasets/{dataset}/diff",
        handler=get_diff,
        summary="Say what a version adds to an older one, and what it labels otherwise.",
        access=Access.KEYED,
        tags=TAGS,
        query=DiffQuery,
        response=VersionDiff,
        errors=READ_ERRORS,
    ),
    Route(
        method="GET",
        path="/v1/datasets/{dataset}/export",
        handler=get_export,
        summary="Download a version's rows as a Parquet file.",
        access=Access.KEYED,
        tags=TAGS,
        query=ExportQuery,
        errors=READ_ERRORS,
        media_type=PARQUET,
    ),
)
