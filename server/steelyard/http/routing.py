"""A route: one row that the router, the pipeline and the OpenAPI document all read.

Also the routes of a composed application: ``Services``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from typing import Any, Literal, Protocol, TypeVar, get_type_hints

from msgspec import DecodeError, Raw, Struct
from sanic import HTTPResponse, Request

from steelyard.caller import Caller
from steelyard.errors import (
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    SteelyardError,
)
from steelyard.http.browsers import Browser
from steelyard.operations.write import Write
from steelyard.settings import Settings
from steelyard.storage import State
from steelyard.wire.payloads import read_payload

T = TypeVar("T")

#: Members of a call by the first argument of a use case.
_CALLERS: dict[Any, str] = {Caller: "caller", Write: "write"}
#: What a write refuses for its idempotency key.
KEY_ERRORS = (IdempotencyConflictError, IdempotencyResponseExpiredError)
_PATH_NAME = re.compile(r"\{(\w+)")

#: Roles that work with data and models, and those that correct labels beside them.
WORKERS = ("owner", "developer")
REVIEWERS = (*WORKERS, "reviewer")


class Access(Enum):
    """The callers that a route allows."""

    PUBLIC = "public"
    #: An API key, or a session of one of the route's roles.
    KEYED = "keyed"
    OPERATOR = "operator"
    #: Nobody is signed in yet; where accounts are on, and for own pages and programs alone.
    SIGN_IN = "sign-in"
    #: A session, by its cookie; an API key where the route says so.
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class Form:
    """A content type of a body other than that of the route's struct."""

    media_type: str
    schema: Mapping[str, Any]


class ServiceOf(Protocol):
    """Finds a service by its class."""

    def __call__(self, kind: type[T], /) -> T:
        """Return the service of a class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to a route, parsed: the source of its use case's arguments."""

    write: Write
    services: Services
    #: Returns the application's service of a class.
    service: ServiceOf
    #: Of a route of the console alone.
    browser: Browser | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    query: Any = None
    body: Any = None

    @property
    def caller(self) -> Caller:
        """The caller; on a public route the address alone, whatever the bearer."""
        return self.write.caller

    @contextmanager
    def reading_stored(self) -> Iterator[None]:
        """Raise ``DataDamagedError`` for text that cannot be decoded, where all that was sent was."""
        try:
            yield
        except (DecodeError, UnicodeDecodeError) as error:
            raise self.service(State).explain(error) from error


#: Answers a call; the pipeline encodes the result.
Use = Callable[[Call], Awaitable[Struct | Raw]]
#: Answers a request that the pipeline cannot read or whose answer it cannot send: a struct to be
#: encoded, a response, or ``None`` once it has sent one piece by piece.
Handler = Callable[[Request, Call], Awaitable[Struct | HTTPResponse | None]]


@dataclass(frozen=True, kw_only=True)
class Route:
    """One route; it has a use case or, where bodies are not JSON, a handler."""

    method: str
    path: str
    summary: str
    access: Access
    tags: tuple[str, ...]
    use: Use | None = None
    handler: Handler | None = None
    #: Shape of the JSON body; ``None`` when the route reads none.
    request: type[Struct] | None = None
    #: Further shapes of it; ``read`` tells which one was sent.
    also_takes: tuple[type[Struct], ...] = ()
    #: Makes the call's body of the decoded JSON, where the struct does not say all there is to check.
    read: Callable[..., Any] | None = None
    #: Whether ``read`` takes how many decisions the settings allow, as ``most``.
    is_bounded: bool = False
    #: Refuses a call before its body is read.
    check: Callable[[Call], None] | None = None
    #: Whether no body at all counts as an object without fields.
    may_be_empty: bool = False
    status: int = 200
    #: The path under which idempotency keys are kept, where it is another route's.
    alias_of: str | None = None
    response: type[Struct] | None = None
    #: What it may refuse beside what its access brings: a route with a key or session may answer
    #: ``NotFoundError``.
    errors: tuple[type[SteelyardError], ...] = ()
    is_inference: bool = False
    #: Whether it may be done twice without harm: the pipeline then keeps its answer for a repeated key.
    is_repeatable: bool = False
    #: Roles of signed-in users that may call it; ``None`` is a user without an account. Of a route
    #: that takes keys, owners and developers where nothing is said.
    roles: tuple[str | None, ...] = ()
    #: Whether a code must have been given lately.
    confirms: bool = False
    #: Whether of signed-in users the operators alone may call it, whatever their role.
    for_operators: bool = False
    #: Whether a route of the console takes API keys too.
    takes_keys: bool = False
    #: Whether a route of the console answers on a server without accounts too.
    needs_no_accounts: bool = False
    query: type[Struct] | None = None
    media_type: str = "application/json"
    #: Further types of its answer, as text; only a handler sends them.
    also_answers: tuple[str, ...] = ()
    max_body: Literal["body", "upload"] = "body"
    forms: tuple[Form, ...] = ()
    headers: tuple[Mapping[str, Any], ...] = ()
    error_body: Callable[[SteelyardError, str | None], Struct] | None = None

    @cached_property
    def reader(self) -> Callable[..., Any]:
        """The function that makes the use case's argument of the decoded body."""
        if self.read is not None:
            return self.read
        assert self.request is not None  # noqa: S101  only such routes have bodies that are read
        return partial(read_payload, shape=self.request)

    @cached_property
    def keyed_as(self) -> str:
        """The scope of idempotency keys, such as ``POST /v1/decide``."""
        return f"{self.method} {self.alias_of or self.path}"

    @cached_property
    def session_roles(self) -> tuple[str | None, ...]:
        """Roles of signed-in users that may call it."""
        return self.roles or (WORKERS if self.access is Access.KEYED else ())

    @cached_property
    def is_write(self) -> bool:
        """Whether it may carry an idempotency key."""
        return self.method != "GET"

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the route: HEAD too where it has GET."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)

    @property
    def name(self) -> str:
        """A name that no other route has, such as ``get_v1_models_model``."""
        words = self.path.replace("{", "").replace("}", "").replace("-", "_").replace(".", "_")
        return f"{self.method.lower()}{words.replace('/', '_')}"


def row(
    at: str,
    use: Callable[..., Awaitable[Struct | Raw]] | None = None,
    summary: str = "",
    **fields: Any,
) -> Route:
    """Return a route, ``at`` its method and path, whose use case is a function of the call or a method.

    A method of a service takes who calls or writes, the names in the path in their order, then the query or the
    body, of which it may leave out each; its annotations are the structs of the route where the row
    names no others.
    """
    method, _, path = at.partition(" ")
    if use is not None:
        types = get_type_hints(use)
        _set_struct(fields, "response", types.pop("return", None))
        if "." in use.__qualname__ and "<" not in use.__qualname__:
            takes, names = list(types.values()), _PATH_NAME.findall(path)
            who = [_CALLERS[takes.pop(0)]] if takes and takes[0] in _CALLERS else []
            sent = []
            if len(takes) > len(names):
                _set_struct(fields, "query" if method == "GET" else "request", takes[-1])
                sent = ["body" if "request" in fields else "query"]
            use = _bound(use, who, names, sent)
    if fields.get("is_repeatable"):
        fields["errors"] = (*fields.get("errors", ()), *KEY_ERRORS)
    return Route(method=method, path=path, use=use, summary=summary, **fields)


def _set_struct(fields: dict[str, Any], name: str, annotation: Any) -> None:
    if isinstance(annotation, type) and issubclass(annotation, Struct) and annotation != Struct:
        fields.setdefault(name, annotation)


def _bound(
    method: Callable[..., Awaitable[Struct | Raw]],
    who: list[str],
    names: list[str],
    sent: list[str],
) -> Use:
    """Return the function of a call that calls a service's method."""
    service = getattr(sys.modules[method.__module__], method.__qualname__.partition(".")[0])

    def use(call: Call) -> Awaitable[Struct | Raw]:
        path = [call.path[name] for name in names]
        beside = (getattr(call, name) for name in sent)
        return method(call.service(service), *(getattr(call, name) for name in who), *path, *beside)

    return use


class KeyFinder(Protocol):
    """Knows callers by their keys."""

    async def authenticate(self, authorization: str | None, address: str) -> Caller:
        """Return the caller of a request, or refuse its key."""


class SessionFinder(Protocol):
    """Knows people by their sessions."""

    async def authenticate(
        self, token: str | None, account_id: str | None, address: str
    ) -> tuple[Caller, str | None]:
        """Return who calls, and a token to keep in place of this one; or refuse."""


class Limits(Protocol):
    """Counts requests by the minute."""

    async def take(self, caller: Caller) -> None:
        """Count a caller's request, or refuse it."""

    async def take_public(self, address: str) -> None:
        """Count a request without a key, or refuse it."""


class Services(Protocol):
    """The services of an application; ``steelyard.app`` composes them."""

    @property
    def settings(self) -> Settings:
        """Bounds of bodies and times."""

    @property
    def accounts(self) -> KeyFinder:
        """The service that finds callers."""

    @property
    def sessions(self) -> SessionFinder:
        """The service that finds sessions."""

    @property
    def limits(self) -> Limits:
        """The service that counts requests."""

    def get(self, kind: type[T]) -> T:
        """Return the service of a class."""


def services_of(request: Request) -> Services:
    """Return the services behind the application that got the request."""
    services: Services = request.app.ctx.services
    return services


def route_of(request: Request) -> Route | None:
    """Return the route that the request is for; ``None`` before one was found."""
    return getattr(request.ctx, "route", None)
