"""Holds every response that a test gets over HTTP to the OpenAPI document.

The status must be declared, the body must have its schema and content type, an error's code must
be one that the route's document names, and every header of ours must be documented and well-formed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from sanic import HTTPResponse, Request, Sanic

from steelyard.app.application import ROUTES
from steelyard.http.access import SECURITY_HEADERS
from steelyard.http.openapi import build_document

#: Headers that HTTP itself brings, and those that are the same everywhere; the document lists
#: neither.
PLAIN_HEADERS = {
    *("connection", "content-length", "content-type", "transfer-encoding"),
    *map(str.lower, SECURITY_HEADERS),
}
_CODE = re.compile(r"`(\w+)`")


@cache
def document() -> dict[str, Any]:
    """Return the document that the routes make."""
    return build_document(ROUTES)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), path)
        for path in document()["paths"]
    )


def check_response(method: str, path: str, status: int, headers: Any, content: bytes) -> None:
    """Fail unless a response is as the document declares.

    A request that no operation answers (404, 405, a preflight, bytes that are no HTTP) is held to
    the error body and the request id alone.
    """
    operation = find_operation(method, path)
    problems = [
        f"the header {name} is not {value!r}"
        for name, value in SECURITY_HEADERS.items()
        if headers.get(name) != value
    ]
    if operation is None:
        if status >= 400 and method != "HEAD":
            problems += _schema_problems({"$ref": "#/components/schemas/ErrorBody"}, content)
        if "x-request-id" not in headers:
            problems.append("there is no X-Request-ID")
    else:
        problems += _declared_problems(operation, status, headers, content)
    assert not problems, f"{method} {path} answered {status}: {'; '.join(problems)}"


def find_operation(method: str, path: str) -> Mapping[str, Any] | None:
    """Return the operation that a request is for; ``None`` when there is none."""
    for pattern, template in _patterns():
        if pattern.fullmatch(path):
            found: Mapping[str, Any] | None = document()["paths"][template].get(method.lower())
            return found
    return None


def _declared_problems(
    operation: Mapping[str, Any], status: int, headers: Any, content: bytes
) -> Iterator[str]:
    response = operation["responses"].get(str(status))
    if response is None:
        yield "the status is not declared"
        return
    if "$ref" in response:
        response = document()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    media_type = headers.get("content-type", "").partition(";")[0]
    if media_type not in response["content"]:
        yield f"the content type {media_type!r} is not declared"
        return
    if media_type == "application/json":
        yield from _schema_problems(response["content"][media_type]["schema"], content)
    if status >= 400:
        code = json.loads(content)["error"]["code"]
        if code not in _CODE.findall(response["description"]):
            yield f"the code {code} is not declared"
    yield from _header_problems(response["headers"], headers)


def _schema_problems(schema: Mapping[str, Any], content: bytes) -> Iterator[str]:
    whole = {**schema, "components": document()["components"]}
    for error in Draft202012Validator(whole).iter_errors(json.loads(content)):
        yield f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"


def _header_problems(declared: Mapping[str, Any], headers: Any) -> Iterator[str]:
    known = document()["components"]["headers"]
    by_name = {
        name.lower(): known[entry["$ref"].rpartition("/")[2]] for name, entry in declared.items()
    }
    for name, entry in by_name.items():
        if name not in headers:
            if entry.get("required"):
                yield f"the header {name} is missing"
            continue
        for error in Draft202012Validator(entry["schema"]).iter_errors(headers[name]):
            yield f"the header {name}: {error.message}"
    for name in headers:
        if name.lower() not in by_name and name.lower() not in PLAIN_HEADERS:
            yield f"the header {name} is not documented"


@contextmanager
def responses_checked() -> Iterator[None]:
    """Check every response that httpx gets from a loopback address while this is open."""
    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def checked(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        response = send(client, request, **options)
        if not options.get("stream"):
            _check_httpx(request, response)
        return response

    async def checked_async(
        client: httpx.AsyncClient, request: httpx.Request, **options: Any
    ) -> httpx.Response:
        response = await send_async(client, request, **options)
        if not options.get("stream"):
            _check_httpx(request, response)
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx.Client, "send", checked)
        patch.setattr(httpx.AsyncClient, "send", checked_async)
        yield


class AnsweredResponses:
    """Checks responses where a server gives them, whichever program asked for them.

    For clients that run in processes of their own: give ``watch`` to ``live_server``.
    """

    def __init__(self) -> None:
        self.n_checked = 0
        self._problems: list[str] = []

    def watch(self, app: Sanic) -> None:
        """Check every response of an application; called before it serves."""
        # After the middleware that writes the headers.
        app.register_middleware(self._check, "response", priority=1)

    def raise_problems(self) -> None:
        """Fail if a response since the last call was not as the document declares."""
        problems, self._problems = self._problems, []
        assert not problems, "\n".join(problems)

    async def _check(self, request: Request, response: HTTPResponse) -> None:
        headers = httpx.Headers({name: str(value) for name, value in response.headers.items()})
        if response.content_type:
            headers["content-type"] = response.content_type
        content = response.body or b""
        self.n_checked += 1
        try:
            check_response(request.method, request.path, response.status, headers, content)
        except AssertionError as error:
            self._problems.append(str(error))


def _check_httpx(request: httpx.Request, response: httpx.Response) -> None:
    path = request.url.raw_path.decode().partition("?")[0]
    check_response(request.method, path, response.status_code, response.headers, response.content)
