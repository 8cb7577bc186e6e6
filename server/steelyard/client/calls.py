"""One call of the API as a value: what is sent, and the type of what comes back.

A call's bytes are made once, so that every attempt sends the same, and checked as the server would
check them: what JSON cannot say is refused before anything is sent.
"""

from __future__ import annotations

import inspect
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from steelyard.errors import InvalidReferenceError, InvalidRequestError, Violation
from steelyard.wire.json_values import MAX_DEPTH, check_json
from steelyard.wire.violations import Violations

_Answer_co = TypeVar("_Answer_co", covariant=True)

_MAX_KEY = 255


@dataclass(frozen=True, slots=True)
class Call(Generic[_Answer_co]):
    """One call.

    Parameters
    ----------
    method : {"GET", "POST", "PATCH", "DELETE"}
        The HTTP method.
    path : str
        The path, its segments encoded.
    answer : type
        What the answer's JSON is decoded to; ``bytes`` for the answer as it is.
    body : bytes or None
        The body, or ``None`` without one.
    query : tuple of (str, str)
        Parameters, in order.
    idempotency_key : str or None
        What makes a repeated write one write. A call without one changes nothing, so that every
        call may be repeated.
    is_scored : bool
        Whether a model runs, so that the server may take its whole deadline.
    may_compress : bool
        Whether the route takes compressed bodies.
    content_type : str
        Of the body.
    """

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    answer: type[_Answer_co]
    body: bytes | None = None
    query: tuple[tuple[str, str], ...] = ()
    idempotency_key: str | None = None
    is_scored: bool = False
    may_compress: bool = True
    content_type: str = "application/json"


def encode_body(
    fields: Mapping[str, Any], guards: Mapping[str, str | UnsetType | None] | None = None
) -> bytes:
    """Return a JSON body of the fields that are not ``None``.

    Parameters
    ----------
    fields : mapping
        Left out where ``None``.
    guards : mapping, optional
        What the caller saw: left out where ``UNSET``, and ``null`` where ``None``.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When a value has no form in JSON; ``details`` names each place.

    Examples
    --------
    >>> encode_body({"context": "Paid twice.", "model": None})
    b'{"context":"Paid twice."}'
    >>> encode_body({"on": True}, {"served": None, "latest": UNSET})
    b'{"on":true,"served":null}'
    """
    given = {name: plain(value) for name, value in fields.items() if value is not None}
    given.update((name, seen) for name, seen in (guards or {}).items() if seen is not UNSET)
    found = Violations()
    check_json(given, found)
    found.raise_if_any()
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value with mappings as dicts, and the structs of ``steelyard.wire`` as plain values.

    What nests deeper than JSON may here stays as it is, for ``check_json`` to refuse.
    """
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {name: plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    return value


def segment(name: str) -> str:
    """Return a name as one segment of a path.

    Raises
    ------
    steelyard.errors.InvalidReferenceError
        When no such name can exist, because it would mean another path.

    Examples
    --------
    >>> segment("router@3")
    'router%403'
    """
    if name in {"", ".", ".."} or set(name) & set("/\\?#\0"):
        raise InvalidReferenceError(
            f"{name!r} cannot be the name of anything here; look at models.list()."
        )
    return quote(name, safe="")


def new_or_checked_key(key: str | None) -> str:
    """Return the idempotency key of a write: the caller's, or a new one.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When the caller's is not 1 to 255 visible ASCII characters.
    """
    if key is None:
        return str(uuid.uuid4())
    if not 1 <= len(key) <= _MAX_KEY or not all("!" <= letter <= "~" for letter in key):
        message = f"Idempotency-Key is not 1 to {_MAX_KEY} visible ASCII characters; give another."
        path = ("header", "Idempotency-Key")
        raise InvalidRequestError(violations=[Violation(path, message, "invalid_key")])
    return key


def describe_method(method: Callable[..., Any], build: Callable[..., Any]) -> None:
    """Return a client's method the signature that people see: its call's, after ``self``."""
    of_build = inspect.signature(build)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    returned = str(of_build.return_annotation).removeprefix("Call[").removesuffix("]")
    method.__signature__ = of_build.replace(  # type: ignore[attr-defined]
        parameters=[itself, *of_build.parameters.values()], return_annotation=returned
    )
