"""Calls that are declared: functions without a body, whose parameters are what a route is sent."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from msgspec import UNSET

from steelyard.client.calls import Call, encode_body, read, remove, segment, write

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


def route(
    target: str,
    answer: type[_Answer],
    *,
    is_question: bool = False,
    is_scored: bool = False,
    may_compress: bool = True,
    **sent: str | Callable[[Any], Any],
) -> Callable[[Callable[_Arguments, Call[_Answer]]], Callable[_Arguments, Call[_Answer]]]:
    """Return a decorator of a function without a body, which then returns the call of a route.

    ``target`` is a method and a path, such as ``POST /v1/drafts/{draft_id}/edits``. Parameters that
    the path names are segments of it. The others are the query of a ``GET`` or ``DELETE`` and the
    fields of other bodies, under their names or those of ``sent``, which has functions too that
    return what is sent for a value. One that is ``UNSET`` by default is sent as ``null`` for
    ``None``. A ``POST`` that ``is_question`` changes nothing, and needs no idempotency key.
    """
    method, _, path = target.partition(" ")
    in_path = re.findall(r"{(\w+)}", path)
    names: dict[str, Any] = {"page_size": "limit"}
    names |= {name: how for name, how in sent.items() if isinstance(how, str)}
    conversions = {name: how for name, how in sent.items() if callable(how)}

    def declare(
        function: Callable[_Arguments, Call[_Answer]],
    ) -> Callable[_Arguments, Call[_Answer]]:
        signature = inspect.signature(function)
        parameters = signature.parameters.values()
        guards = [parameter.name for parameter in parameters if parameter.default is UNSET]

        @functools.wraps(function)
        def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Call[_Answer]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            values = bound.arguments
            for name, convert in conversions.items():
                values[name] = convert(values[name])
            address = path.format_map({name: segment(values.pop(name)) for name in in_path})
            key = values.pop("idempotency_key", None)
            guarded = {name: values.pop(name) for name in guards}
            fields = {names.get(name, name): value for name, value in values.items()}
            if method == "GET":
                return read(address, answer, **fields)
            if method == "DELETE":
                return remove(address, answer, key=key, **fields)
            if is_question:
                body = encode_body(fields, guarded)
                return Call(
                    "POST", address, answer, body, is_scored=is_scored, may_compress=may_compress
                )
            verb: Any = method
            return write(
                address, answer, fields, key=key, guards=guarded, is_scored=is_scored, method=verb
            )

        return call

    return declare


def listed(values: Iterable[Any] | None) -> list[Any] | None:
    """Return values as a list."""
    return None if values is None else list(values)


def if_true(value: object) -> object:
    """Return ``None`` for what is not so, which is left out."""
    return value or None
