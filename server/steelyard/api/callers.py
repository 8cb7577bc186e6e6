"""What the pipeline learned about a request, for the handlers: the caller, the key, the services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanic import Request

from steelyard.services.caller import Caller

if TYPE_CHECKING:
    from steelyard.api.routing import Route
    from steelyard.api.services import ApiServices


def caller_of(request: Request) -> Caller:
    """Give who calls. On a public route it is the address alone, whatever the bearer."""
    caller: Caller = request.ctx.caller
    return caller


def key_of(request: Request) -> str | None:
    """Give the checked ``Idempotency-Key``; ``None`` when there is none."""
    key: str | None = request.ctx.idempotency_key
    return key


def services_of(request: Request) -> ApiServices:
    """Give the services behind the application that got the request."""
    services: ApiServices = request.app.ctx.services
    return services


def route_of(request: Request) -> Route | None:
    """Give the route that the request is for; ``None`` before one was found."""
    return getattr(request.ctx, "route", None)
