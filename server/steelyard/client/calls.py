"""One call of the API as a value: its request, and the type of its response.

A call's bytes are made once, so that every attempt sends the same, and checked as the server would
check them: values that JSON cannot express are refused before anything is sent.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from steelyard.errors import InvalidReferenceError, InvalidRequestError
from steelyard.wire.json_values import MAX_DEPTH, check_json
from steelyard.wire.violations import Violations

_Answer = TypeVar("_Answer")
_Answer_co = TypeVar("_Answer_co", covariant=True)
_Item_co = TypeVar("_Item_co", covariant=True)

_MAX_KEY = 255


@dataclass(frozen=True, slots=True)
class Call(Generic[_Answer_co]):
    """One call: its request, and the type its answer is decoded to, ``bytes`` for the raw body.

    A call without an ``idempotency_key`` changes nothing, so that every call may be repeated. One that
    ``is_scored`` runs a model, so that the server may take its whole deadline.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    answer: type[_Answer_co]
    body: bytes | None = None
    query: tuple[tuple[str, str], ...] = ()
    idempotency_key: str | None = None
    is_scored: bool = False
    may_compress: bool = True
    content_type: str = "application/json"


def read(path: str, answer: type[_Answer], **query: Any) -> Call[_Answer]:
    """Return the call that gets a path; parameters that are ``None`` are left out."""
    return Call("GET", path, answer, query=query_of(**query))


def write(
    path: str,
    answer: type[_Answer],
    fields: Mapping[str, Any],
    *,
    key: str | None,
    guards: Mapping[str, str | UnsetType | None] | None = None,
    is_scored: bool = False,
    method: Literal["POST", "PUT", "PATCH"] = "POST",
) -> Call[_Answer]:
    """Return the call that sends fields under an idempotency key, a new one for ``None``."""
    body, key = encode_body(fields, guards), new_or_checked_key(key)
    return Call(method, path, answer, body, idempotency_key=key, is_scored=is_scored)


def remove(
    path: str,
    answer: type[_Answer],
    fields: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    guards: Mapping[str, str | UnsetType | None] | None = None,
    **query: Any,
) -> Call[_Answer]:
    """Return the call that deletes a path under an idempotency key, a new one for ``None``."""
    body = None if fields is None else encode_body(fields, guards)
    key = new_or_checked_key(key)
    return Call("DELETE", path, answer, body, query_of(**query), idempotency_key=key)


def query_of(**parameters: Any) -> tuple[tuple[str, str], ...]:
    """Return parameters as a query: ``None`` is left out, and a list repeats its parameter.

    >>> query_of(limit=10, cursor=None, wrong=True, status=["queued", "running"])
    (('limit', '10'), ('wrong', 'true'), ('status', 'queued'), ('status', 'running'))
    """
    query = []
    for name, value in parameters.items():
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        given = [item for item in (value if is_list else [value]) if item is not None]
        query += [
            (name, str(item).lower() if isinstance(item, bool) else str(item)) for item in given
        ]
    return tuple(query)


def encode_body(
    fields: Mapping[str, Any], guards: Mapping[str, str | UnsetType | None] | None = None
) -> bytes:
    """Return a JSON body of the fields that are not ``None``, checked as JSON.

    ``guards`` are the state that the caller saw: left out where ``UNSET``, and ``null`` where ``None``.

    >>> encode_body({"on": True, "model": None}, {"served": None, "latest": UNSET})
    b'{"on":true,"served":null}'
    """
    given = {name: plain(value) for name, value in fields.items() if value is not None}
    given.update((name, seen) for name, seen in (guards or {}).items() if seen is not UNSET)
    violations = Violations()
    check_json(given, violations)
    violations.raise_if_any()
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value with mappings as dicts, and the structs of ``steelyard.wire`` as plain values.

    Values that nest too deep stay as they are, for ``check_json`` to refuse.
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
    """Return a name as one segment of a path; refuse one that would mean another path.

    >>> segment("router@3")
    'router%403'
    """
    if name in {"", ".", ".."} or set(name) & set("/\\?#\0"):
        raise InvalidReferenceError(
            f"{name!r} cannot be the name of anything here; look at models.list()."
        )
    return quote(name, safe="")


def new_or_checked_key(key: str | None) -> str:
    """Return the idempotency key of a write: the caller's, checked, or a new one."""
    if key is None:
        return str(uuid.uuid4())
    if not 1 <= len(key) <= _MAX_KEY or not all("!" <= letter <= "~" for letter in key):
        message = f"Idempotency-Key is not 1 to {_MAX_KEY} visible ASCII characters; give another."
        path = ("header", "Idempotency-Key")
        raise InvalidRequestError.at(path, message, "invalid_key")
    return key


class Page(Protocol[_Item_co]):
    """A page of a list."""

    @property
    def data(self) -> Sequence[_Item_co]:
        """The items of the page."""

    @property
    def has_more(self) -> bool:
        """Whether another page follows."""


class CursorPage(Page[_Item_co], Protocol[_Item_co]):
    """A page of a list, and where the next begins."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins."""
