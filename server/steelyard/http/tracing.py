"""Request ids: one per request, minted here, on every response and in every error body."""

from __future__ import annotations

from sanic import Request

from steelyard.ids import new_id

REQUEST_ID_HEADER = "X-Request-ID"
#: The same id under the name that TypeSafe's clients read, on the routes that they call.
TYPESAFE_REQUEST_ID_HEADER = "x-typesafe-request-id"
_TYPESAFE_PATHS = ("/v1/systemone", "/v1/models")


def get_request_id(request: Request) -> str:
    """Return the request's id, minting it at the first call."""
    request_id: str | None = getattr(request.ctx, "request_id", None)
    if request_id is None:
        request_id = request.ctx.request_id = new_id("req")
    return request_id


def is_typesafe(path: str) -> bool:
    """Return whether a path is one that TypeSafe's clients call."""
    return any(path == known or path.startswith(f"{known}/") for known in _TYPESAFE_PATHS)


def request_id_headers(request: Request) -> dict[str, str]:
    """Return the headers that carry the request's id."""
    request_id = get_request_id(request)
    headers = {REQUEST_ID_HEADER: request_id}
    if is_typesafe(request.path):
        headers[TYPESAFE_REQUEST_ID_HEADER] = request_id
    return headers
