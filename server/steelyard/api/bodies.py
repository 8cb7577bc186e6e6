"""Bodies in and out: what a request's headers must say, and how an answer is encoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from sanic import HTTPResponse, Request

from steelyard.errors import UnsupportedEncodingError, UnsupportedMediaTypeError

_MEDIA_TYPE = "application/json"


def read_json_bytes(request: Request) -> bytes:
    """Give the bytes of a JSON body after looking at the headers that describe it.

    Raises
    ------
    steelyard.errors.UnsupportedMediaTypeError
        When ``Content-Type`` is not JSON in UTF-8.
    steelyard.errors.UnsupportedEncodingError
        When the body is compressed.
    """
    header = request.headers.get("content-type", "")
    media_type, *parameters = (part.strip().lower() for part in header.split(";"))
    charsets = [value for value in parameters if value.startswith("charset=")]
    is_utf8 = all(value[8:].strip('"') in {"utf-8", "utf8"} for value in charsets)
    if media_type != _MEDIA_TYPE or not is_utf8:
        given = f"is {header!r}" if header else "is missing"
        raise UnsupportedMediaTypeError(
            f"The Content-Type {given}; send the body as {_MEDIA_TYPE} in UTF-8."
        )
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedEncodingError(
            f"The Content-Encoding is {encoding!r}; send the body uncompressed."
        )
    body: bytes = request.body
    return body


class JsonResponse(HTTPResponse):
    """A response with a JSON body, and with no header that says nothing."""

    @property
    def processed_headers(self) -> Iterator[tuple[bytes, bytes]]:
        """Give the headers to send; Sanic adds an empty ``alt-svc``, which is left out."""
        return ((name, value) for name, value in super().processed_headers if value)


def json_response(value: Any, status: int = 200) -> HTTPResponse:
    """Encode an answer as compact JSON."""
    return JsonResponse(msgspec.json.encode(value), status=status, content_type=_MEDIA_TYPE)
