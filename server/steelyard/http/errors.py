"""The one error handler: every way to fail, in one body, with the request's id in a header.

Own errors answer as they are. Sanic's are translated here, each to one of ours; a test checks that
none is forgotten. Anything else is a fault of this server: it is logged with the request's id, and
the caller learns the id and nothing more.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress

from sanic import HTTPResponse, Request
from sanic import exceptions as sanic_errors
from sanic.http import Http

from steelyard import errors
from steelyard.http.bodies import json_response
from steelyard.http.logs import get_request_id, is_typesafe, request_id_headers
from steelyard.http.routing import route_of

_log = logging.getLogger(__name__)


def _not_found(request: Request, _: BaseException) -> errors.SteelyardError:
    return errors.NotFoundError(
        f"There is no route {request.path}; look at the path, which never ends with a slash."
    )


def _method_not_allowed(request: Request, error: BaseException) -> errors.SteelyardError:
    if request.path.endswith("/"):  # the router looks at the method before the slash
        return _not_found(request, error)
    allowed = " or ".join(_allowed_methods(request))
    return errors.MethodNotAllowedError(
        f"{request.path} does not take {request.method}; use {allowed}."
    )


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of a path; Sanic's own error names none where a path has several."""
    router = request.app.router
    allowed = []
    for method in sorted({method for route in router.routes for method in route.methods}):
        with suppress(sanic_errors.MethodNotAllowed, sanic_errors.NotFound):
            router.get(request.path, method, request.headers.get("host"))
            allowed.append(method)
    return allowed


def _too_large(request: Request, error: BaseException) -> errors.SteelyardError:
    # The bound of a body is the reader's; here it is the head's, or that of an unread body.
    if "header" in str(error):
        limit = request.app.config.REQUEST_MAX_HEADER_SIZE
        return errors.PayloadTooLargeError(
            f"The headers are longer than {limit} bytes; send fewer."
        )
    limit = request.app.config.REQUEST_MAX_SIZE
    return errors.PayloadTooLargeError(
        f"The body is longer than {limit} bytes; send a shorter one."
    )


def _malformed(_: Request, error: BaseException) -> errors.SteelyardError:
    return errors.MalformedRequestError(
        f"The request cannot be read as HTTP/1.1 ({error}); correct its head or its framing."
    )


def _not_received(_: Request, __: BaseException) -> errors.SteelyardError:
    return errors.RequestTimeoutError("The request did not arrive in time; send it again.")


def _not_answered(request: Request, error: BaseException) -> errors.SteelyardError:
    stream = request.stream
    if isinstance(stream, Http) and stream.request_body:
        # The rest of the body never came. Sanic would go on waiting for it after the answer.
        stream.request_body = None
        return _not_received(request, error)
    return errors.DeadlineExceededError(
        "No answer by the deadline; nothing was charged. Send it again."
    )


Translation = Callable[[Request, BaseException], errors.SteelyardError]

#: Sanic's exceptions and our errors for them; the first that fits is used.
TRANSLATIONS: tuple[tuple[type[BaseException], Translation], ...] = (
    (sanic_errors.NotFound, _not_found),
    (sanic_errors.MethodNotAllowed, _method_not_allowed),
    (sanic_errors.PayloadTooLarge, _too_large),
    (sanic_errors.RequestTimeout, _not_received),
    (sanic_errors.ServiceUnavailable, _not_answered),
    (sanic_errors.BadRequest, _malformed),
    (sanic_errors.ExpectationFailed, _malformed),
    (sanic_errors.RangeNotSatisfiable, _malformed),
    (sanic_errors.URITooLong, _malformed),
)


def translate(request: Request, error: BaseException) -> errors.SteelyardError:
    """Return our error for an exception; ``InternalError`` for an unexpected one."""
    if isinstance(error, errors.SteelyardError):
        return error
    for kind, translation in TRANSLATIONS:
        if isinstance(error, kind):
            return translation(request, error)
    return errors.InternalError(
        "This server failed and logged why under this request id; tell whoever runs it."
    )


async def answer_error(request: Request, error: BaseException) -> HTTPResponse:
    """Answer an exception in the one error body."""
    request_id = get_request_id(request)
    ours = translate(request, error)
    request.ctx.error_code = ours.code
    if isinstance(ours, errors.InternalError):
        _log.error(
            "request %s: %s %s failed", request_id, request.method, request.path, exc_info=error
        )
    route = route_of(request)
    if route is None or route.error_body is None:
        response = json_response(ours.body(request_id), ours.status)
    else:
        response = json_response(route.error_body(ours, request_id), ours.status)
    response.headers.update(request_id_headers(request))
    response.headers.update(_headers(request, ours))
    if isinstance(ours, errors.MethodNotAllowedError):
        response.headers["Allow"] = ", ".join(_allowed_methods(request))
    return response


def _headers(request: Request, error: errors.SteelyardError) -> dict[str, str]:
    """Return a refusal's headers: when to retry, how to authenticate, and the running operation."""
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after_s is not None:
        headers["Retry-After"] = decimal_seconds(error.retry_after_s)
        if is_typesafe(request.path):
            headers["retry-after-ms"] = str(math.ceil(error.retry_after_s * 1000))
    if error.operation is not None:
        headers["Idempotency-Status"] = error.operation.status
        headers["X-Operation-ID"] = error.operation.id
    return headers


def decimal_seconds(seconds: float) -> str:
    """Write seconds as clients parse them: digits and a point, rounded up to milliseconds.

    >>> decimal_seconds(2.0), decimal_seconds(0.0123), decimal_seconds(1e6)
    ('2', '0.013', '1000000')
    """
    return f"{math.ceil(seconds * 1000) / 1000:.3f}".rstrip("0").rstrip(".")
