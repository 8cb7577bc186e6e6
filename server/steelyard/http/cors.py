"""Pages of other origins: they may call the public routes, without credentials, and no others."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from sanic import HTTPResponse, Request

from steelyard.http.bodies import ApiResponse
from steelyard.http.routing import Access, Route

EXPOSED_HEADERS = ("X-Request-ID", "Retry-After", "Idempotency-Status", "X-Operation-ID")
# A client that has a key sends it wherever it calls; a public route does not look at it.
_ALLOWED_HEADERS = ("Authorization", "Content-Type", "Content-Encoding", "Idempotency-Key")
_PREFLIGHT_S = 600


def allow_any_origin(headers: MutableMapping[str, str]) -> None:
    """Allow any origin to read the answer of a public route."""
    headers["Access-Control-Allow-Origin"] = "*"
    headers["Access-Control-Expose-Headers"] = ", ".join(EXPOSED_HEADERS)


class Preflights:
    """Answers a browser's preflight for a public path.

    Other requests, and other paths, go on: a keyed route answers its method's error.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._methods: dict[str, list[str]] = {}
        for route in routes:
            if route.access is Access.PUBLIC:
                self._methods.setdefault(route.path, []).append(route.method)

    def answer(self, request: Request) -> HTTPResponse | None:
        """Return the answer to an ``OPTIONS`` that asks for a page; ``None`` for any other."""
        methods = self._methods.get(request.path)
        if methods is None or "access-control-request-method" not in request.headers:
            return None
        return ApiResponse(
            status=204,
            headers={
                "Access-Control-Allow-Origin": "*",
                "Access-Control-Allow-Methods": ", ".join(sorted(methods)),
                "Access-Control-Allow-Headers": ", ".join(_ALLOWED_HEADERS),
                "Access-Control-Max-Age": str(_PREFLIGHT_S),
            },
        )
