"""Request ids, and logs on the error stream: JSON lines, one for every request, or text for people.

A line never holds a context, a body, a header's secret or a query's value; a route is told by its
pattern and a caller by its ids.
"""

from __future__ import annotations

import logging

import msgspec
from pythonjsonlogger.json import JsonFormatter
from sanic import Request
from sanic.http import Http
from sanic.response import BaseHTTPResponse

from steelyard.http.access import client_address
from steelyard.http.routing import route_of
from steelyard.ids import new_id

REQUEST_ID_HEADER = "X-Request-ID"
#: The same id under the name that TypeSafe's clients read, on the routes that they call.
TYPESAFE_REQUEST_ID_HEADER = "x-typesafe-request-id"
#: What such a path begins with, once it ends with a slash.
TYPESAFE_PATHS = ("/v1/systemone/", "/v1/models/")


def get_request_id(request: Request) -> str:
    """Return the request's id, minting it at the first call."""
    request_id: str | None = getattr(request.ctx, "request_id", None)
    if request_id is None:
        request_id = request.ctx.request_id = new_id("req")
    return request_id


def is_typesafe(path: str) -> bool:
    """Return whether a path is one that TypeSafe's clients call."""
    return f"{path}/".startswith(TYPESAFE_PATHS)


def request_id_headers(request: Request) -> dict[str, str]:
    """Return the headers that carry the request's id."""
    request_id = get_request_id(request)
    headers = {REQUEST_ID_HEADER: request_id}
    if is_typesafe(request.path):
        headers[TYPESAFE_REQUEST_ID_HEADER] = request_id
    return headers


_access = logging.getLogger("steelyard.access")

#: What a record of a request has of it.
_TOLD = "told"

#: The route of a request that none was found for.
UNMATCHED = "unmatched"


class TextFormatter(logging.Formatter):
    """Writes lines for a person; that of a request is its method, route, status and time."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {message}", "%H:%M:%S", style="{")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        if record.name != _access.name:
            return super().format(record)
        told = vars(record)[_TOLD]
        request = f"{told['method']} {told['route']} {told['status']} {told['ms']} ms"
        return f"{self.formatTime(record, self.datefmt)} {request}"


class _JsonFormatter(JsonFormatter):
    """Writes lines of JSON; that of a request, of which there are many, without a look at its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        if record.name != _access.name:
            return super().format(record)
        head = {
            "time": self.formatTime(record, self.datefmt),
            "level": record.levelname,
            "logger": record.name,
            "message": record.msg,
        }
        return msgspec.json.encode(head | vars(record)[_TOLD]).decode()


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a record is not a framework's advice, as on modes that nobody here chose."""
    return record.levelno >= logging.ERROR or not record.name.startswith("sanic")


def configure_logging(level: str, form: str = "json") -> None:
    """Write this process's log to the error stream, as JSON lines or as text.

    ``form`` is ``json``, ``text``, or ``auto``: text on a terminal. In text, requests have a line at
    the level ``debug`` alone.
    """
    handler = logging.StreamHandler()
    is_text = form == "text" or (form == "auto" and handler.stream.isatty())
    if is_text:
        handler.setFormatter(TextFormatter())
    else:
        handler.setFormatter(
            _JsonFormatter(
                "{asctime}{levelname}{name}{message}",
                style="{",
                rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
                datefmt="%Y-%m-%dT%H:%M:%S%z",
            )
        )
    handler.addFilter(_is_ours)
    _access.setLevel(logging.WARNING if is_text and level != "debug" else logging.NOTSET)
    root = logging.getLogger()
    for previous in root.handlers[:]:
        root.removeHandler(previous)
    root.addHandler(handler)
    ours = level.upper()
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[ours]))
    logging.getLogger("steelyard").setLevel(ours)


def log_access(request: Request, response: BaseHTTPResponse, seconds: float) -> None:
    """Write the line of one request."""
    if not _access.isEnabledFor(logging.INFO):
        return
    route = route_of(request)
    caller = getattr(request.ctx, "caller", None)
    stream = request.stream
    body = getattr(response, "body", None)
    told = {
        "request_id": get_request_id(request),
        "method": request.method,
        "route": UNMATCHED if route is None else route.path,
        "status": response.status,
        "error": getattr(request.ctx, "error_code", None),
        "ms": round(seconds * 1000, 3),
        "address": client_address(request),
        "account_id": None if caller is None else caller.account_id,
        "key_id": None if caller is None else caller.key_id,
        "bytes_in": (stream.request_bytes or 0) if isinstance(stream, Http) else 0,
        "bytes_out": len(body or b""),
    }
    _access.info("request", extra={_TOLD: told})
