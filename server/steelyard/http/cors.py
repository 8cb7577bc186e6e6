"""Pages of other origins: they may call the public routes, without credentials, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping

from sanic import HTTPResponse, Request

from steelyard.http.bodies import ApiResponse
from steelyard.http.routing import Access, Route

EXPOSED_HEADERS = ("X-Request-ID", "Retry-After", "Idempotency-Status", "X-Operation-ID")
_ALLOWED_HEADERS = ("Content-Type", "Content-Encoding", "Idempotency-Key")
_PREFLIGHT_S = 600


def add_cors_headers(route: Route | None, headers: MutableMapping[str, str]) -> None:
    """Allow any origin to read the answer of a public route."""
    if route is not None and route.access is Access.PUBLIC:
        headers["Access-Control-Allow-Origin"] = "*"
        headers["Access-Control-Expose-Headers"] = ", ".join(EXPOSED_HEADERS)


def answer_preflights(routes: Iterable[Route]) -> Callable[[Request], HTTPResponse | None]:
    """Return what answers a browser that asks what a page may send to a public path.

    Other requests, and other paths, go on: a keyed route answers its method's error.
    """
    methods: dict[str, list[str]] = {}
    for route in routes:
        if route.access is Access.PUBLIC:
            methods.setdefault(route.path, []).append(route.method)

    def answer(request: Request) -> HTTPResponse | None:
        if request.method != "OPTIONS" or request.path not in methods:
            return None
        if "access-control-request-method" not in request.headers:
            return None
        return ApiResponse(
            status=204,
            headers={
                "Access-Control-Allow-Origin": "*",
                "Access-Control-Allow-Methods": ", ".join(sorted(methods[request.path])),
                "Access-Control-Allow-Headers": ", ".join(_ALLOWED_HEADERS),
                "Access-Control-Max-Age": str(_PREFLIGHT_S),
            },
        )

    return answer
