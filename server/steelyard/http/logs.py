"""Request ids, and logs on the error stream: JSON lines, one for every request, or text for people.

A line never holds a context, a body, a header's secret or a query's value; a route is named by its
pattern and a caller by its ids.
"""

from __future__ import annotations

import logging

import msgspec
from pythonjsonlogger.json import JsonFormatter
from sanic import Request
from sanic.http import Http
from sanic.response import BaseHTTPResponse

from steelyard.errors import AccountsOffError
from steelyard.http.access import client_address
from steelyard.http.routing import route_of
from steelyard.ids import new_id
from steelyard.settings import read_variable

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

#: The attribute of a log record that has the facts of its request.
_FIELDS = "request_fields"

#: The route of a request that none was found for.
UNMATCHED = "unmatched"


#: Escape codes of a terminal's colours.
_GREEN, _YELLOW, _RED = "\x1b[32m", "\x1b[33m", "\x1b[31m"
_PLAIN = "\x1b[0m"


class TextFormatter(logging.Formatter):
    """Writes lines for a person; that of a request is its method, route, status and time.

    ``is_coloured`` gives warnings, errors and statuses a terminal's colours.
    """

    def __init__(self, *, is_coloured: bool = False) -> None:
        super().__init__("{asctime} {levelname} {message}", "%H:%M:%S", style="{")
        self._is_coloured = is_coloured

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        if record.name != _access.name:
            line = super().format(record)
            if record.levelno < logging.WARNING:
                return line
            return self._in(_RED if record.levelno >= logging.ERROR else _YELLOW, line)
        fields = vars(record)[_FIELDS]
        status, error = fields["status"], fields["error"]
        colour = _GREEN if status < 400 else _YELLOW if status < 500 else _RED
        answer = self._in(colour, f"{status}" if error is None else f"{status} {error}")
        time = self.formatTime(record, self.datefmt)
        return f"{time} {fields['method']} {fields['route']} {answer} {fields['ms']:.0f} ms"

    def _in(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._is_coloured else text


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether a record is anything else than a read that went well, of which pages make many.

    Accounts that are off are an answer to a page's question, and no fault.
    """
    if record.name != _access.name:
        return True
    fields = vars(record)[_FIELDS]
    went_well = fields["status"] < 400 or fields["error"] == AccountsOffError.code
    return not (went_well and fields["method"] in ("GET", "HEAD"))


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
        return msgspec.json.encode(head | vars(record)[_FIELDS]).decode()


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a record is not a framework's hint, such as one on modes."""
    return record.levelno >= logging.ERROR or not record.name.startswith("sanic")


def configure_logging(level: str, form: str = "json") -> None:
    """Write this process's log to the error stream, as JSON lines or as text.

    ``form`` is ``json``, ``text``, or ``auto``: text on a terminal, in colours unless ``NO_COLOR``
    is set. In text, reads that succeed have a line at the level ``debug`` alone.
    """
    handler = logging.StreamHandler()
    is_terminal = handler.stream.isatty()
    if form == "text" or (form == "auto" and is_terminal):
        is_coloured = is_terminal and not read_variable("NO_COLOR")
        handler.setFormatter(TextFormatter(is_coloured=is_coloured))
        if level != "debug":
            handler.addFilter(_is_worth_a_line)
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
    fields = {
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
    _access.info("request", extra={_FIELDS: fields})
