"""Structured logs: JSON lines on the error stream, one for every request.

A line never holds a context, a body, a header's secret or a query's value; a route is told by its
pattern and a caller by its ids.
"""

from __future__ import annotations

import logging

from pythonjsonlogger.json import JsonFormatter
from sanic import Request
from sanic.http import Http
from sanic.response import BaseHTTPResponse

from steelyard.http.context import route_of
from steelyard.http.tracing import get_request_id

_access = logging.getLogger("steelyard.access")

#: The route of a request that none was found for.
UNMATCHED = "unmatched"


def configure_logging(level: str) -> None:
    """Write this process's log as JSON lines to the error stream."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter(
            "{asctime}{levelname}{name}{message}",
            style="{",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            datefmt="%Y-%m-%dT%H:%M:%S%z",
        )
    )
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
    _access.info(
        "request",
        extra={
            "request_id": get_request_id(request),
            "method": request.method,
            "route": UNMATCHED if route is None else route.path,
            "status": response.status,
            "error": getattr(request.ctx, "error_code", None),
            "ms": round(seconds * 1000, 3),
            "account_id": None if caller is None else caller.account_id,
            "key_id": None if caller is None else caller.key_id,
            "bytes_in": (stream.request_bytes or 0) if isinstance(stream, Http) else 0,
            "bytes_out": len(body or b""),
        },
    )
