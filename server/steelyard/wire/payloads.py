"""The first pass over a request's body: strict JSON, in the shape of the wire's struct.

msgspec tells whether a value fits, fast, and stops at the first thing that does not. When it does
not fit, the walk here over msgspec's own description of the struct finds everything: one source of
truth, and no second set of rules.
"""

from __future__ import annotations

import asyncio
import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from steelyard.wire.decoding import convert, converter_to
from steelyard.wire.json_values import check_json, decode_json
from steelyard.wire.schemas import SEVERAL_LINES, SINGLE_LINE, portable_pattern
from steelyard.wire.violations import BODY, Path, Violations, show

T = TypeVar("T")
Shape = TypeVar("Shape", bound=msgspec.Struct)


def open_payload(
    payload: bytes | bytearray | Mapping[str, Any] | object,
    shape: type[msgspec.Struct],
    violations: Violations,
) -> dict[str, Any]:
    """Return a request's fields, noting the problems of the JSON and of its shape."""
    value: Any = payload
    if isinstance(payload, bytes | bytearray):
        value = decode_json(bytes(payload))
    elif not isinstance(payload, dict) and isinstance(payload, Mapping):
        value = dict(payload)
    check_json(value, violations)
    if BODY in violations.paths:
        # Too many values, or not a JSON value at all: nothing more can be checked.
        violations.raise_if_any()
    check_shape(value, shape, violations, BODY)
    if not isinstance(value, dict):
        violations.raise_if_any()
    fields: dict[str, Any] = value
    return fields


def read_payload(
    payload: object,
    shape: type[Shape],
    check: Callable[[dict[str, Any], Violations], None] | None = None,
) -> Shape:
    """Return a request as its struct; ``check`` notes the problems that the struct does not say."""
    violations = Violations()
    fields = open_payload(payload, shape, violations)
    if check is not None:
        check(fields, violations)
    violations.raise_if_any()
    return convert(fields, shape)


#: Bodies longer than this are worked on by a thread; a shorter one costs less than the thread's turn.
INLINE_BYTES = 16 * 1024


async def work_on(work: Callable[..., T], *what: object, is_long: bool) -> T:
    """Return ``work(*arguments)``, off the event loop when it is long."""
    return await asyncio.to_thread(work, *what) if is_long else work(*what)


#: NUL as JSON has it (or a backslash before what looks like it), and what is wrong with it.
_NUL = b"\\u0000"
HAS_NUL = ("has the character NUL (U+0000); send it without.", "nul")
#: What is wrong with a text by the pattern that it does not match.
_FORMS = {
    SINGLE_LINE: "has a line feed or another control character; write it on one line.",
    SEVERAL_LINES: "has a control character; use only letters, tabs and line feeds.",
    r"\S": "is blank; write something, or leave it out.",
}
# Nobody mistypes a name of more characters than this, and comparing long texts is slow.
_COMPARED_CHARACTERS = 64
_NOUNS: dict[type[inspect.Type], str] = {
    inspect.StrType: "a text",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
    inspect.ListType: "an array",
}


def check_shape(
    value: object, struct: type[msgspec.Struct], violations: Violations, path: Path
) -> None:
    """Note everything in a value that a struct's shape does not allow."""
    try:
        converter_to(struct)(value)
    except (
        msgspec.MsgspecError,
        AttributeError,
        OverflowError,
        RecursionError,
        TypeError,
        UnicodeError,
    ):
        # The walk has the last word. It takes what msgspec does not: subclasses of plain types,
        # such as NumPy's float64, which programs pass in without knowing; and strings with lone
        # surrogates, which ``check_json`` has refused.
        _walk(value, _describe(struct), path, violations)


def refuse_nul(payload: bytes, value: object, struct: type[msgspec.Struct]) -> None:
    """Refuse a body that has NUL in a text of its struct: PostgreSQL holds none, whatever SQLite does."""
    violations = Violations()
    if _NUL in payload:
        for path, text in _texts(value, _describe(struct), BODY):
            if "\0" in text:
                violations.add(path, *HAS_NUL)
    violations.raise_if_any()


def _texts(value: object, expected: inspect.Type, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the texts of a value, and its keys, where a type has texts."""
    expected = _unwrap(expected)
    if isinstance(expected, inspect.UnionType):
        for kind in expected.types:
            yield from _texts(value, kind, path)
    elif isinstance(value, str) and isinstance(expected, inspect.StrType):
        yield path, value
    elif isinstance(value, list) and isinstance(expected, inspect.ListType):
        for index, item in enumerate(value):
            yield from _texts(item, expected.item_type, (*path, index))
    elif isinstance(value, dict) and isinstance(expected, inspect.StructType):
        for field in expected.fields:
            yield from _texts(value.get(field.encode_name), field.type, (*path, field.encode_name))
    elif isinstance(value, dict) and isinstance(expected, inspect.DictType):
        for key, item in value.items():
            yield (*path, key), key
            yield from _texts(item, expected.value_type, (*path, key))


def read_texts(texts: list[str], annotated: Any, violations: Violations, path: Path) -> Any:
    """Return a parameter's texts converted to its type; note their problems."""
    expected = _unwrap(_describe(annotated))
    kinds = expected.types if isinstance(expected, inspect.UnionType) else (expected,)
    lists = [kind for kind in map(_unwrap, kinds) if isinstance(kind, inspect.ListType)]
    if any("\0" in text for text in texts):
        violations.add(path, *HAS_NUL)
        return None
    try:
        return convert(texts if lists else texts[0], annotated, strict=False)
    except msgspec.ValidationError:
        if lists:
            _check_length(texts, lists[0], path, violations)
        item = lists[0].item_type if lists else expected
        for text in texts:
            _walk_text(text, item, path, violations)
        if not any(
            violation.path == path for violation in violations.listed
        ):  # such as a number of more than 64 bits
            given = ", ".join(map(show, texts))
            violations.add(path, f"is {given}; give {_join(_expected_words(item))}.", "wrong_type")
    return None


def _walk_text(text: str, expected: inspect.Type, path: Path, violations: Violations) -> None:
    """Note the problems of a text that stands for a value."""
    expected = _unwrap(expected)
    if isinstance(expected, inspect.UnionType):
        kinds = [kind for kind in expected.types if not isinstance(kind, inspect.NoneType)]
        expected = _unwrap(kinds[0])
    value: object = text
    if isinstance(expected, inspect.IntType | inspect.FloatType):
        read = int if isinstance(expected, inspect.IntType) else float
        with suppress(ValueError):
            value = read(text)
    if isinstance(value, str) and not isinstance(expected, inspect.StrType | inspect.LiteralType):
        violations.add(
            path, f"is {show(text)}; give {_join(_expected_words(expected))}.", "wrong_type"
        )
    else:
        _walk(value, expected, path, violations)


@cache
def _describe(annotated: Any) -> inspect.Type:
    return inspect.type_info(annotated)


def _walk(value: object, expected: inspect.Type, path: Path, violations: Violations) -> None:
    expected = _unwrap(expected)
    if isinstance(expected, inspect.UnionType):
        _walk_union(value, expected, path, violations)
    elif not _accepts(expected, value):
        _wrong(value, expected, path, violations)
    elif isinstance(expected, inspect.StructType):
        _walk_struct(value, expected, path, violations)  # type: ignore[arg-type]
    elif isinstance(expected, inspect.DictType):
        _walk_dict(value, expected, path, violations)  # type: ignore[arg-type]
    elif isinstance(expected, inspect.ListType):
        _walk_list(value, expected, path, violations)  # type: ignore[arg-type]
    elif isinstance(expected, inspect.StrType):
        _check_length(value, expected, path, violations)  # type: ignore[arg-type]
        if expected.pattern and re.search(expected.pattern, str(value)) is None:
            form = f"does not match {portable_pattern(expected.pattern)}; correct it."
            violations.add(path, _FORMS.get(expected.pattern, form), "wrong_form")
    elif isinstance(expected, inspect.IntType | inspect.FloatType):
        _check_bounds(value, expected, path, violations)  # type: ignore[arg-type]
    elif isinstance(expected, inspect.LiteralType) and value not in expected.values:
        _refuse_choice(value, expected, path, violations)


def _walk_union(
    value: object, expected: inspect.UnionType, path: Path, violations: Violations
) -> None:
    fitting = [kind for kind in map(_unwrap, expected.types) if _accepts(kind, value)]
    if not fitting:
        _wrong(value, expected, path, violations)
    elif isinstance(fitting[0], inspect.LiteralType) and value not in fitting[0].values:
        _refuse_choice(value, expected, path, violations)
    elif value is not None:
        _walk(value, fitting[0], path, violations)


def _unwrap(expected: inspect.Type) -> inspect.Type:
    while isinstance(expected, inspect.Metadata):
        expected = expected.type
    return expected


def _accepts(expected: inspect.Type, value: object) -> bool:
    """Return whether a value is of the JSON type expected, its content aside."""
    python_types: tuple[type, ...]
    if isinstance(expected, inspect.AnyType):
        return True
    if isinstance(expected, inspect.NoneType):
        return value is None
    if isinstance(expected, inspect.StrType | inspect.LiteralType):
        python_types = (str,)
    elif isinstance(expected, inspect.DictType | inspect.StructType):
        python_types = (dict,)
    elif isinstance(expected, inspect.ListType):
        python_types = (list, tuple)
    elif isinstance(expected, inspect.BoolType):
        python_types = (bool,)
    elif isinstance(expected, inspect.IntType):
        return isinstance(value, int) and not isinstance(value, bool)
    else:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, python_types)


def _walk_struct(
    value: dict[Any, Any], expected: inspect.StructType, path: Path, violations: Violations
) -> None:
    fields = {field.encode_name: field for field in expected.fields}
    for name, field in fields.items():
        if name in value:
            _walk(value[name], field.type, (*path, name), violations)
        elif field.required:
            violations.add((*path, name), "is missing; add it.", "missing")
    refused: dict[str, str] = getattr(expected.cls, "refused_fields", {})
    for name in value:
        if name in fields or not isinstance(name, str):
            continue
        if name in refused:
            violations.add(
                (*path, name), f"is not taken here. {refused[name]}; remove it.", "refused"
            )
        else:
            hint = "" if violations.is_full else _suggest(name, list(fields))
            violations.add((*path, name), f"is not a field here; {hint}remove it.", "unknown_field")


def _suggest(name: str, known: list[str]) -> str:
    if len(name) > _COMPARED_CHARACTERS:
        return ""
    near = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {near[0]!r}? Rename or " if near else ""


def _walk_dict(
    value: dict[Any, Any], expected: inspect.DictType, path: Path, violations: Violations
) -> None:
    # Here and in arrays, entries past the bound are not looked at: they have to go anyway.
    _check_length(value, expected, path, violations)
    key_type, value_type = _unwrap(expected.key_type), expected.value_type
    for key, item in itertools.islice(value.items(), expected.max_length):
        if not isinstance(key, str):
            continue
        if isinstance(key_type, inspect.StrType) and key_type.max_length is not None:
            bound = key_type.max_length
            if len(key) > bound:
                violations.add(
                    (*path, key),
                    f"is a key of {len(key)} characters; use at most {bound}.",
                    "too_long",
                )
                continue
        _walk(item, value_type, (*path, key), violations)


def _walk_list(
    value: list[Any] | tuple[Any, ...],
    expected: inspect.ListType,
    path: Path,
    violations: Violations,
) -> None:
    _check_length(value, expected, path, violations)
    for index, item in enumerate(value[: expected.max_length]):
        _walk(item, expected.item_type, (*path, index), violations)


def _check_length(
    value: str | dict[Any, Any] | list[Any] | tuple[Any, ...],
    expected: inspect.StrType | inspect.DictType | inspect.ListType,
    path: Path,
    violations: Violations,
) -> None:
    low, high = expected.min_length or 0, expected.max_length
    if low <= len(value) and (high is None or len(value) <= high):
        return
    units = ("character", "characters") if isinstance(value, str) else ("entry", "entries")
    allowed = f"at least {low}" if high is None else f"at most {high}"
    if low and high is not None:
        allowed = f"{low} to {high}"
    has = "is empty" if len(value) == 0 else f"has {len(value)} {units[len(value) != 1]}"
    violations.add(path, f"{has}; give {allowed}.", "too_long" if len(value) > low else "too_short")


def _check_bounds(
    value: float, expected: inspect.IntType | inspect.FloatType, path: Path, violations: Violations
) -> None:
    allowed = None
    # Written so that NaN, which compares with nothing, is refused.
    if expected.ge is not None and not value >= expected.ge:
        allowed = f"the smallest allowed is {_number(expected.ge)}"
    elif expected.gt is not None and not value > expected.gt:
        allowed = f"give more than {_number(expected.gt)}"
    elif expected.le is not None and not value <= expected.le:
        allowed = f"the largest allowed is {_number(expected.le)}"
    elif expected.lt is not None and not value < expected.lt:
        allowed = f"give less than {_number(expected.lt)}"
    if allowed is not None:
        violations.add(path, f"is {show(value)}; {allowed}.", "out_of_range")


def _number(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def _wrong(value: object, expected: inspect.Type, path: Path, violations: Violations) -> None:
    violations.add(
        path, f"is {_noun(value)}; give {_join(_expected_words(expected))}.", "wrong_type"
    )


def _refuse_choice(
    value: object, expected: inspect.Type, path: Path, violations: Violations
) -> None:
    """Refuse a text that is none of the texts of a type, and say what else the type takes."""
    allowed = _join([word for word in _expected_words(expected) if word != "null"])
    violations.add(path, f"is {show(value)}; use {allowed}.", "not_allowed")


def _expected_words(expected: inspect.Type) -> list[str]:
    expected = _unwrap(expected)
    if isinstance(expected, inspect.UnionType):
        nouns = [noun for kind in expected.types for noun in _expected_words(kind)]
        return list(dict.fromkeys(nouns))
    if isinstance(expected, inspect.NoneType):
        return ["null"]
    if isinstance(expected, inspect.LiteralType):
        return [show(choice) for choice in sorted(expected.values, key=str)]
    return [_NOUNS.get(type(expected), "another value")]


def _noun(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return show(value)
    nouns = ((str, "a text"), (dict, "an object"), (list | tuple, "an array"))
    for kind, noun in nouns:
        if isinstance(value, kind):
            return noun
    return "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"


def _join(choices: list[str]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"
