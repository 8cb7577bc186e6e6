"""Calls of the saved-view routes: one function a route."""

from __future__ import annotations

from steelyard.client.calls import Call, read, remove, segment, write
from steelyard.views.wire import DeletedView, View, ViewPage

_VIEWS = "/v1/views"


def save(name: str, address: str, *, idempotency_key: str | None = None) -> Call[View]:
    """Keep a view of the workbench, its address behind ``?``, under a name: ``POST /v1/views``."""
    return write(_VIEWS, View, {"name": name, "address": address}, key=idempotency_key)


def page(*, page_size: int = 200, cursor: str | None = None) -> Call[ViewPage]:
    """List saved views, newest first: ``GET /v1/views``."""
    return read(_VIEWS, ViewPage, limit=page_size, cursor=cursor)


def delete(view_id: str, *, idempotency_key: str | None = None) -> Call[DeletedView]:
    """Delete a saved view: ``DELETE /v1/views/{view}``."""
    return remove(f"{_VIEWS}/{segment(view_id)}", DeletedView, key=idempotency_key)
