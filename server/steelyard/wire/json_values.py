"""Read JSON strictly: duplicate keys and other laxities are refused, with their place.

Refused: bytes that are not UTF-8, keys that appear twice, numbers that are not finite (``NaN``,
``Infinity``, ``1e999``), lone UTF-16 surrogates, nesting deeper than 32, and, in values that a
program passes in, anything JSON has no form for.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any, NoReturn

from steelyard.errors import InvalidRequestError
from steelyard.wire.violations import BODY, Path, Violations, has_lone_surrogate, show

#: The most arrays and objects that may hold one another, the body's own object included.
MAX_DEPTH = 32
#: The most values in one request: a JSON body of a megabyte cannot hold more.
MAX_VALUES = 1_048_576

# Deeper than this the parser is not tried: it calls itself, and its stack is the interpreter's.
_PARSER_DEPTH = 200
_LARGEST = sys.float_info.max
_LARGEST_DIGITS = len(str(int(_LARGEST)))

# A string, to be passed over with the brackets in it, or a bracket. Possessive, so linear in time
# on any input; the closing quote is optional so that an open string ends the search.
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{}]', re.DOTALL)
_OPENING, _CLOSING = frozenset((b"[", b"{")), frozenset((b"]", b"}"))


class _RepeatedKeys(dict[str, Any]):
    """An object in which keys appear more than once; the last value of each is kept."""

    repeated: tuple[str, ...] = ()


def decode_json(body: bytes) -> Any:
    """Parse bytes as JSON, before their shape is known, in linear time and at any depth."""
    if not body.strip():
        _refuse("is empty; send a JSON object.", "missing")
    if _nests_deeper(body, _PARSER_DEPTH):
        _refuse_depth()
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        _refuse(
            f"is not UTF-8: byte {error.start} cannot be read. Encode it as UTF-8.", "invalid_utf8"
        )
    if text.startswith("\ufeff"):
        _refuse("starts with a byte-order mark; send it without.", "invalid_json")
    try:
        return _DECODER.decode(text.lstrip(" \t\n\r"))
    except json.JSONDecodeError as error:
        _refuse(
            f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}. Correct it "
            "there.",
            "invalid_json",
        )
    except RecursionError:
        _refuse_depth()


def check_json(value: object, violations: Violations, path: Path = BODY) -> None:
    """Note every part of a value that strict JSON cannot express."""
    _Check(violations).visit(value, path, 0)


class _Check:
    """One walk over a value, bounded in depth and in the number of values."""

    def __init__(self, violations: Violations) -> None:
        self._violations = violations
        self._n_values = 0

    def visit(self, value: object, path: Path, depth: int) -> None:
        self._n_values += 1
        if self._n_values > MAX_VALUES:
            # Shared lists can stand for more values than there is memory for.
            self._violations.add(BODY, f"holds over {MAX_VALUES} values; send fewer.", "too_long")
        elif isinstance(value, str):
            self._visit_text(value, path)
        elif isinstance(value, dict | list | tuple):
            self._visit_container(value, path, depth + 1)
        elif isinstance(value, int | float):
            # Booleans pass as the integers they are.
            if not -_LARGEST <= value <= _LARGEST:
                self._violations.add(
                    path,
                    "is not a finite number; give a number of at most 1.79e308 in size.",
                    "not_finite",
                )
        elif value is not None:
            self._violations.add(
                path,
                f"is a {type(value).__name__}, which JSON has no form for; give a text, a number, "
                "a boolean, None, a list or a dict.",
                "not_json",
            )

    def _visit_text(self, text: str, path: Path) -> None:
        if not text.isascii() and has_lone_surrogate(text):
            self._violations.add(
                path,
                "has a lone UTF-16 surrogate; send whole characters.",
                "lone_surrogate",
            )

    def _visit_container(
        self, value: dict[Any, Any] | list[Any] | tuple[Any, ...], path: Path, depth: int
    ) -> None:
        if depth > MAX_DEPTH:
            self._violations.add(
                path, f"nests deeper than {MAX_DEPTH}; send a flatter value.", "too_deep"
            )
        elif isinstance(value, dict):
            self._visit_object(value, path, depth)
        else:
            for index, item in enumerate(value):
                self.visit(item, (*path, index), depth)
                if self._n_values > MAX_VALUES:
                    return

    def _visit_object(self, value: dict[Any, Any], path: Path, depth: int) -> None:
        for key in value.repeated if isinstance(value, _RepeatedKeys) else ():
            self._violations.add(
                (*path, key), "appears more than once; send each key once.", "duplicate_key"
            )
        for key, item in value.items():
            if not isinstance(key, str):
                self._violations.add(
                    (*path, show(key)),
                    f"is a key that is a {type(key).__name__}; JSON keys are texts.",
                    "not_json",
                )
                continue
            inner = (*path, key)
            if not key.isascii() and has_lone_surrogate(key):
                self._violations.add(
                    inner,
                    "is a key with a lone UTF-16 surrogate; send whole characters.",
                    "lone_surrogate",
                )
            self.visit(item, inner, depth)
            if self._n_values > MAX_VALUES:
                return


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for key, _ in pairs:
        if key in seen:
            repeated[key] = None
        seen.add(key)
    marked = _RepeatedKeys(value)
    marked.repeated = tuple(repeated)
    return marked


def _integer(digits: str) -> int | float:
    # Python refuses to read integers of thousands of digits, and no double can hold them.
    return int(digits) if len(digits) <= _LARGEST_DIGITS + 1 else math.inf


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def _nests_deeper(body: bytes, bound: int) -> bool:
    if body.count(b"[") + body.count(b"{") <= bound:
        return False
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(body):
        token = match.group()
        if token in _OPENING:
            depth += 1
            if depth > bound:
                return True
        elif token in _CLOSING:
            depth -= 1
    return False


def _refuse_depth() -> NoReturn:
    _refuse(f"nests deeper than {MAX_DEPTH}; send a flatter value.", "too_deep")


def _refuse(predicate: str, type_: str) -> NoReturn:
    raise InvalidRequestError.at(BODY, f"The request body {predicate}", type_) from None
