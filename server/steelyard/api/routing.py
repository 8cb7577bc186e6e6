"""What a route is: one row that the router, the pipeline and the OpenAPI document all read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from msgspec import Struct
from sanic import HTTPResponse, Request

from steelyard.errors import SteelyardError

#: Gives the response, or ``None`` once it has sent one piece by piece.
Handler = Callable[[Request], Awaitable[HTTPResponse | None]]


class Access(Enum):
    """Who may call a route.

    Attributes
    ----------
    PUBLIC
        Anyone; a bearer is ignored, a wrong one too.
    KEYED
        The holder of an API key whose scope covers the route; with accounts off, anyone.
    OPERATOR
        Whoever runs the server: a client on a loopback address, or a key of scope ``full``.
    """

    PUBLIC = "public"
    KEYED = "keyed"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Form:
    """A content type of a body other than that of the route's struct.

    Parameters
    ----------
    media_type : str
        Such as ``text/csv``.
    schema : mapping
        Its schema in the OpenAPI document.
    """

    media_type: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route.

    Parameters
    ----------
    method : str
        HTTP method, in capitals.
    path : str
        As OpenAPI writes it, ``/v1/models/{model}``; without a slash at the end. A handler finds
        the decoded values in ``request.match_info``.
    handler : callable
        Takes the request and gives the response; raises ``SteelyardError`` to refuse.
    summary : str
        One sentence on what the route does.
    access : Access
        Who may call it.
    tags : tuple of str
        Groups of the OpenAPI document.
    request : type of msgspec.Struct, optional
        Shape of the JSON body; ``None`` when the route reads none.
    response : type of msgspec.Struct, optional
        Shape of the JSON answer; ``None`` when the answer is not JSON.
    errors : tuple of SteelyardError classes
        Refusals beyond those that every route of this access has.
    is_inference : bool, default False
        Whether a key of scope ``inference`` may call it.
    query : type of msgspec.Struct, optional
        Shape of the query; every field is text, a whole number, a boolean or a list of these.
    media_type : str, default "application/json"
        Content type of the answer.
    max_body : {"body", "upload"}
        Which of the settings bounds the body.
    forms : tuple of Form
        Further content types that the body may have.
    headers : tuple of mapping
        Headers of the request that it reads, as the OpenAPI document describes parameters.
    error_body : callable, optional
        Gives the body of a refusal from the error and the request's id, where a route's clients
        read more than the one body of every route.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    access: Access
    tags: tuple[str, ...]
    request: type[Struct] | None = None
    response: type[Struct] | None = None
    errors: tuple[type[SteelyardError], ...] = ()
    is_inference: bool = False
    query: type[Struct] | None = None
    media_type: str = "application/json"
    max_body: Literal["body", "upload"] = "body"
    forms: tuple[Form, ...] = ()
    headers: tuple[Mapping[str, Any], ...] = ()
    error_body: Callable[[SteelyardError, str | None], Struct] | None = None

    @property
    def is_write(self) -> bool:
        """Whether it may carry an idempotency key."""
        return self.method != "GET"

    @property
    def name(self) -> str:
        """A name that no other route has, such as ``get_v1_models_model``."""
        words = self.path.replace("{", "").replace("}", "").replace("-", "_").replace(".", "_")
        return f"{self.method.lower()}{words.replace('/', '_')}"
