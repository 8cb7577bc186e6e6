"""Rows that were sent, made the files of a version; nothing of it is in the state yet."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from steelyard.datasets.bodies import PARTS, RowsRequest, read_body, read_form
from steelyard.datasets.csv_rows import CsvReader
from steelyard.datasets.definitions import decisions_by_id, fingerprints_by_id, refused_in_csv
from steelyard.datasets.frames.scanning import load_definitions
from steelyard.datasets.frames.truths import with_warnings
from steelyard.datasets.frames.writing import VersionWriter
from steelyard.datasets.ingest import RowReader
from steelyard.datasets.labels import METHOD_OF, SUPERVISION_OF
from steelyard.datasets.rows import Row
from steelyard.datasets.uploads import Upload
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import (
    AddedVia,
    AddRows,
    CreateDataset,
    Dataset,
    DatasetCheck,
    InputReceipt,
    LabelingLineage,
    Side,
)
from steelyard.memory import without_collections
from steelyard.operations.write import Write, payload_sha256
from steelyard.storage.frame_store import FrameStore
from steelyard.waiting import PASSES
from steelyard.wire.json_values import decode_json

Answer = TypeVar("Answer", bound=Struct)

_ADDED_VIA: dict[str, AddedVia] = {
    "json": "api",
    "jsonl": "jsonl",
    "multipart": "jsonl",
    "csv": "csv",
}
_SIDE_OF: dict[str, Side | None] = {
    "examples": None,
    "training": "training",
    "evaluation": "evaluation",
}


@dataclass(frozen=True, slots=True)
class RowBounds:
    """How many rows a dataset may have: ``min_rows`` to ``max_rows``."""

    min_rows: int
    max_rows: int


@dataclass(frozen=True, slots=True)
class MadeRows(Generic[Answer]):
    """The origin of rows that a use case made by itself."""

    #: Returns the answer, in the transaction that makes the dataset.
    answer: Callable[[Connection, Dataset], Answer]
    previous: int | None = None


@dataclass(frozen=True, slots=True)
class SentRows:
    """A request that brings rows, its fields read and its rows not yet."""

    request: RowsRequest
    upload: Upload
    sha256: str
    receipt: InputReceipt
    #: The labeling job that made its rows.
    labeling: LabelingLineage | None = None
    #: When that job started, in seconds since 1970.
    used_at: float | None = None

    def named(self, write: Write) -> Write:
        """Return a write with the digest of its content."""
        return replace(write, digest=self.sha256)

    @property
    def added_via(self) -> AddedVia:
        """How its rows came."""
        return _ADDED_VIA[self.upload.form] if self.labeling is None else "labeling"


def read_sent(upload: Upload, shape: type[CreateDataset | AddRows], **scope: str) -> SentRows:
    """Read everything of a request but its rows."""
    if upload.form == "json":
        with without_collections():
            value = decode_json(upload.body)
            digest = payload_sha256({**scope, "body": value})
            request = read_body(upload.body, shape, value)
            del value
        body_sha256 = hashlib.sha256(upload.body).hexdigest()
        receipt = InputReceipt(format="json", sha256=body_sha256, bytes=len(upload.body))
        return SentRows(request, upload, digest, receipt)
    request = read_form(upload.fields, upload.files, shape)
    files = {name: upload.files[name].sha256 for name in PARTS if name in upload.files}
    sent: dict[str, Any] = {**scope, "fields": dict(upload.fields), "files": files}
    return SentRows(request, upload, payload_sha256(sent), _receipt_of(upload))


def write_version(
    store: FrameStore,
    dataset_id: str,
    sent: SentRows,
    bounds: RowBounds,
    previous: Manifest | None = None,
) -> Manifest:
    """Check rows and write them as the next version's files, durably; it blocks."""
    reader, csv = _reader(store, bounds, previous)
    with VersionWriter(store, dataset_id, previous) as writer:
        for part, rows in _read(reader, sent, csv):
            if not reader.findings.n_found:
                writer.add(rows, _SIDE_OF[part])
        error = reader.error()
        if error is not None:
            raise error
        made = writer.finish(
            fraction=sent.request.evaluation_fraction,
            min_rows=bounds.min_rows,
            max_rows=bounds.max_rows,
        )
    return with_warnings(store, made)


def check_rows(sent: SentRows, bounds: RowBounds) -> DatasetCheck:
    """Return the rows a request would make, and their problems; it blocks and stores nothing.

    Problems that show only beside other rows, such as duplicates and conflicts of sides, are left out.
    """
    reader = RowReader(max_lines=bounds.max_rows)
    for _ in _read(reader, sent, CsvReader(reader, {})):
        pass
    error = reader.error()
    return DatasetCheck(
        rows=reader.n_rows,
        lines=reader.n_lines,
        method=None if reader.supervision is None else METHOD_OF[reader.supervision],
        problems=reader.findings.n_found,
        code=None if error is None else error.code,
        message=None if error is None else error.message,
        details=[] if error is None else error.details or [],
    )


def _reader(
    store: FrameStore, bounds: RowBounds, previous: Manifest | None
) -> tuple[RowReader, CsvReader]:
    if previous is None:
        reader = RowReader(max_lines=bounds.max_rows)
        return reader, CsvReader(reader, {})
    definitions = load_definitions(store, previous)
    reader = RowReader(
        supervision=SUPERVISION_OF[previous.method],
        definitions=fingerprints_by_id(definitions),
        max_lines=bounds.max_rows,
    )
    has_rewards = previous.method == "reward"
    known = {} if has_rewards else decisions_by_id(definitions)
    refused = refused_in_csv(definitions, has_rewards=has_rewards)
    return reader, CsvReader(reader, known, refused)


def _read(reader: RowReader, sent: SentRows, csv: CsvReader) -> Iterator[tuple[str, list[Row]]]:
    upload = sent.upload
    for part in PARTS:
        batches: Iterator[list[Row]]
        if upload.form == "json":
            if part not in sent.request.parts:
                continue
            batches = reader.read_examples(sent.request.parts[part], part)
        elif part not in upload.files:
            continue
        elif upload.form == "csv":
            batches = csv.read(PASSES.after(upload.files[part].chunks()), part)
        else:
            batches = reader.read_ndjson(PASSES.after(upload.files[part].chunks()), part)
        for rows in batches:
            yield part, rows


def _receipt_of(upload: Upload) -> InputReceipt:
    """Return the digest of the files alone, so that a form's boundary does not count."""
    hasher = hashlib.sha256()
    n_bytes = 0
    for part in PARTS:
        if part in upload.files:
            n_bytes += upload.files[part].n_bytes
            for chunk in PASSES.after(upload.files[part].chunks()):
                hasher.update(chunk)
    return InputReceipt(
        format="multipart" if upload.form == "multipart" else "jsonl",
        sha256=hasher.hexdigest(),
        bytes=n_bytes,
    )
