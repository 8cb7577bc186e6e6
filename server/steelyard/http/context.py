"""What the application hands to the pipeline, and what the pipeline notes on a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from sanic import Request

from steelyard.caller import Caller
from steelyard.settings import Settings

if TYPE_CHECKING:
    from steelyard.http.routing import Route

T = TypeVar("T")


class Accounts(Protocol):
    """Knows callers by their keys."""

    async def authenticate(self, authorization: str | None, address: str) -> Caller:
        """Return the caller of a request, or refuse its key."""
        ...


class Limits(Protocol):
    """Counts requests by the minute."""

    def take(self, caller: Caller) -> None:
        """Count a caller's request, or refuse it."""
        ...

    def take_public(self, address: str) -> None:
        """Count a request without a key, or refuse it."""
        ...


class Services(Protocol):
    """What an application answers with; ``steelyard.app`` composes it."""

    @property
    def settings(self) -> Settings:
        """Bounds of bodies and times."""
        ...

    @property
    def accounts(self) -> Accounts:
        """Who knows callers."""
        ...

    @property
    def limits(self) -> Limits:
        """Who counts requests."""
        ...

    def get(self, kind: type[T]) -> T:
        """Return the service of a class."""
        ...


def services_of(request: Request) -> Services:
    """Return the services behind the application that got the request."""
    services: Services = request.app.ctx.services
    return services


def route_of(request: Request) -> Route | None:
    """Return the route that the request is for; ``None`` before one was found."""
    return getattr(request.ctx, "route", None)
