"""Uploads of rows: JSON, JSON Lines, CSV or a form of parts, read as they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header
from sanic import Request

from steelyard.datasets.bodies import PARTS
from steelyard.datasets.uploads import Upload, UploadedFile, UploadForm
from steelyard.errors import InvalidRequestError, Violation
from steelyard.http.bodies import JSON, body_bound, media_type_of, read_bytes, read_stream

NDJSON, CSV, MULTIPART = "application/x-ndjson", "text/csv", "multipart/form-data"
_FORMS: dict[str, UploadForm] = {JSON: "json", NDJSON: "jsonl", CSV: "csv", MULTIPART: "multipart"}

#: Headers that stand for fields of a body that has none, and whether they are percent-encoded.
FIELD_HEADERS = {
    "X-Dataset-Name": ("name", True),
    "X-Evaluation-Fraction": ("evaluation_fraction", False),
    "X-Max-Price-Usd": ("max_price_usd", False),
    "X-Family": ("family", False),
}
#: Bounds of a form: its parts, the headers of each, and the bytes of a part that is text.
_MAX_PARTS, _MAX_HEADERS, _MAX_TEXT_BYTES = 16, 8, 16 * 1024


async def receive_upload(
    request: Request, media_types: Sequence[str], fields: Sequence[str] = ()
) -> Upload:
    """Read a body that brings rows."""
    media_type = media_type_of(request, *media_types)
    form = _FORMS[media_type]
    if form in {"json", "multipart"}:
        _refuse_query(request)
    if form == "json":
        return Upload(form, body=await read_bytes(request))
    if form == "multipart":
        return await _receive_form(request)
    upload = Upload(form, _fields_of(request, fields))
    try:
        await read_stream(request, upload.add_file(PARTS[0]).write)
    except BaseException:
        upload.__exit__()
        raise
    return upload


def _refuse_query(request: Request) -> None:
    if request.args:
        raise InvalidRequestError(
            violations=[
                Violation(
                    ("query", name),
                    f"{name} is for a body of rows alone; give it in the body.",
                    "refused",
                )
                for name in request.args
            ]
        )


def _fields_of(request: Request, names: Sequence[str]) -> dict[str, str]:
    """Return the fields that headers and the query hold; the query wins."""
    given = {}
    for header, (name, is_encoded) in FIELD_HEADERS.items():
        text = request.headers.get(header)
        if text is None or name not in names:
            continue
        try:
            given[name] = unquote(text, errors="strict") if is_encoded else text
        except UnicodeDecodeError:
            message = f"{header} is not percent-encoded UTF-8; encode it."
            raise InvalidRequestError.at(("header", header), message, "invalid_utf8") from None
    for name in names:
        text = request.args.get(name)
        if text is not None:
            given[name] = text
    return given


async def _receive_form(request: Request) -> Upload:
    _, options = parse_options_header(request.headers.get("content-type", ""))
    fields: dict[str, str] = {}
    upload = Upload("multipart", fields)
    try:
        boundary = _bytes_of(str(options.get("boundary", "")))
        form = _FormReader(upload, fields, boundary, body_bound(request))
        await read_stream(request, form.take)
        form.end()
    except MultipartError as error:
        upload.__exit__()
        message = f"The request body is not a complete multipart form: {error}. Send it again."
        raise InvalidRequestError.at(("body",), message, "invalid_multipart") from error
    except BaseException:
        upload.__exit__()
        raise
    return upload


def _bytes_of(boundary: str) -> bytes:
    try:
        return boundary.encode()
    except UnicodeEncodeError:  # a header's bytes may be of any encoding
        raise MultipartError("The boundary is not UTF-8") from None


class _FormReader:
    """Reads a form: texts into fields, and rows into files."""

    def __init__(
        self, upload: Upload, fields: dict[str, str], boundary: bytes, max_bytes: int
    ) -> None:
        self._upload = upload
        self._fields = fields
        self._parser = PushMultipartParser(
            boundary,
            max_header_count=_MAX_HEADERS,
            max_segment_size=max_bytes,
            max_segment_count=_MAX_PARTS,
        )
        self._name = ""
        self._text = bytearray()
        self._file: UploadedFile | None = None

    def take(self, data: bytes) -> None:
        for event in self._parser.parse(data):
            self._handle(event)

    def end(self) -> None:
        self._parser.close()

    def _handle(self, event: Any) -> None:
        if isinstance(event, MultipartSegment):
            self._begin(event)
        elif event is None:
            self._finish()
        elif self._file is not None:
            self._file.write(bytes(event))
        else:
            self._text += event
            if len(self._text) > _MAX_TEXT_BYTES:
                message = f"{self._name} is over {_MAX_TEXT_BYTES} bytes; send a shorter one."
                raise InvalidRequestError.at(("body", self._name), message, "too_long")

    def _begin(self, segment: MultipartSegment) -> None:
        self._name = segment.name or ""
        if not self._name:
            message = "A part of the form has no name; name each part for its field."
            raise InvalidRequestError.at(("body",), message, "missing")
        if self._name in self._fields or self._name in self._upload.files:
            message = f"{self._name} is there twice; send it once."
            raise InvalidRequestError.at(("body", self._name), message, "duplicate")
        self._text.clear()
        self._file = self._upload.add_file(self._name) if self._name in PARTS else None

    def _finish(self) -> None:
        if self._file is not None:
            return
        try:
            self._fields[self._name] = self._text.decode()
        except UnicodeDecodeError:
            message = f"{self._name} is not UTF-8; encode it as UTF-8."
            raise InvalidRequestError.at(("body", self._name), message, "invalid_utf8") from None
