"""Pages of a version's rows, asked of the server and given as tables want them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from steelyard.client import Client
from steelyard.client.answers import labels_of
from steelyard.datasets.wire import MAX_PAGE_ROWS, Example
from steelyard.wire.decoding import decode
from steelyard_workbench.kit.components.frame_table import PageRequest, TablePage
from steelyard_workbench.kit.words import cut
from steelyard_workbench.parts.datasets.questions import as_line, as_text, label_chips

#: Columns of a page that can be shown, with their titles and widths in pixels.
COLUMNS = {
    "row": ("#", 64),
    "context": ("Text", 380),
    "labels": ("Answers", 190),
    "side": ("For", 84),
    "characters": ("Length", 84),
}
#: Columns by which the server sorts, and its names for them.
_ORDERS = {"row": "index", "characters": "context_characters"}
SORTABLE = tuple(_ORDERS)
#: Characters of a context in a table.
_SHOWN_CONTEXT = 200


def search_page(
    client: Client,
    dataset_id: str,
    request: PageRequest,
    *,
    version: int | None = None,
    where: Mapping[str, Any] | None = None,
    text: str | None = None,
) -> TablePage:
    """Ask for a page of the rows that a filter holds for."""
    order = None
    for column, descending in request.sort[:1]:
        order = {"by": _ORDERS[column], "descending": descending}
    matches = client.datasets.search(
        dataset_id,
        where=where,
        text=text,
        order=order,
        version=version,
        offset=request.offset,
        limit=request.limit,
    )
    held_out = _held_out(client, dataset_id, matches.version, matches.indexes)
    rows = [
        _record(index, row, "check" if index in held_out else "training")
        for index, row in zip(matches.indexes, matches.data, strict=True)
    ]
    return TablePage(pl.DataFrame(rows), matches.total)


def listed_page(
    client: Client, dataset_id: str, request: PageRequest, *, version: int, indexes: Sequence[int]
) -> TablePage:
    """Ask for a page, of 60 rows at most, of ascending places ``indexes``, which is their order."""
    page_indexes = indexes[request.offset : request.offset + request.limit]
    if not page_indexes:
        return TablePage(pl.DataFrame(), len(indexes))
    page = search_page(
        client,
        dataset_id,
        PageRequest(0, request.limit),
        version=version,
        where=at_places(page_indexes),
    )
    return TablePage(page.rows, len(indexes))


def every_row(client: Client, dataset_id: str, **of: Any) -> Iterator[Example]:
    """Yield the rows of a version, a page at a time."""
    offset: int | None = 0
    while offset is not None:
        page = client.datasets.rows(dataset_id, offset=offset, **of)
        yield from page.data
        offset = offset + len(page.data) if page.has_more and page.data else None


def at_places(indexes: Iterable[int]) -> dict[str, Any]:
    """Return the filter that holds for rows at some places, runs of them as one.

    >>> at_places([4, 5, 9])["filters"][0]
    {'type': 'index', 'at_least': 4, 'below': 6}
    """
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and index == runs[-1][1]:
            runs[-1][1] = index + 1
        else:
            runs.append([index, index + 1])
    ranges = [{"type": "index", "at_least": first, "below": below} for first, below in runs]
    return {"type": "any", "filters": ranges}


def read_row(json: str) -> Example:
    """Read the column ``json`` of a page."""
    return decode(json, Example)


def _held_out(client: Client, dataset_id: str, version: int, indexes: Sequence[int]) -> set[int]:
    """Return which rows are on the evaluation side, which a row does not say of itself."""
    if not indexes:
        return set()
    where = {"type": "all", "filters": [{"type": "side", "side": "evaluation"}, at_places(indexes)]}
    matches = client.datasets.search(dataset_id, where=where, version=version, limit=MAX_PAGE_ROWS)
    return set(matches.indexes)


def _record(index: int, row: Example, side: str) -> dict[str, Any]:
    text, line = as_text(row.context), as_line(row.context)
    return {
        "row": index,
        "context": cut(line, _SHOWN_CONTEXT),
        "labels": label_chips(labels_of(row), row.decisions),
        "side": side,
        "characters": len(text),
        "json": msgspec.json.encode(row).decode(),
    }
