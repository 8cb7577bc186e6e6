"""JSON objects as rows: one a line, in one array, or in an object that has one array."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any

import msgspec

from steelyard.imports.delimited import wrong_characters
from steelyard.imports.encodings import Encoding, Source
from steelyard.imports.splits import split_of
from steelyard.imports.table import Refused, Table, unique_names
from steelyard.imports.unpacked import check_size
from steelyard.wire.decoding import decode
from steelyard.wire.violations import has_lone_surrogate

#: Endings of files that have an object a line.
LINES = frozenset({".jsonl", ".ndjson"})
#: An object with its line, or its number from 1.
Numbered = tuple[int, dict[str, Any]]
#: What stands between the rows of an array.
_BETWEEN = re.compile(r"[ \t\r\n,]*")
#: Values of JSON that is read whole: by its commas where it is one object, and in arrays of rows that are
#: not objects of few fields.
MAX_VALUES, _NARROW = 4_000_000, 64
#: Lists and objects of a file that has hardly anything in them: fewer bytes for each than these.
MAX_NESTED, _LEAST_BYTES = 1_000_000, 10
#: Several items of an array as NumPy shows it, without commas, and one item.
_ITEM = re.compile(r"""'[^']*'|"[^"]*"|-?\d+(?:\.\d*)?""")
_ARRAY = re.compile(rf"\[\s*(?:{_ITEM.pattern})(?:\s+(?:{_ITEM.pattern}))+\s*\]")
#: Where documents of Elasticsearch, and items of OpenAI's evals, have their names; and records of Airtable,
#: Django, JSON:API, GraphQL and the hub's viewer, which have ids and times alone beside these.
_ENVELOPES = ("_source", "item")
_RECORDS = ("fields", "attributes", "node", "row")
#: Which list has the rows, of an answer of an API that has several.
_LISTS = ("rows", "records", "data", "items", "results")
#: Characters of a cell that is looked at as a list or an object.
_LONGEST_STRUCTURE = 10_000


class _RepeatedNameError(ValueError):
    """An object that has a name twice, of which one value would be lost."""


def read_objects(source: Source, encoding: Encoding) -> tuple[list[Numbered], list[Refused], str]:
    """Return the objects of a file, its other items, and its form; no object where it is not JSON."""
    _check_nesting(source)
    with encoding.open(source) as text:
        start = text.read(1)
        while start.isspace():
            start = text.read(1)
        is_object = start == "{" or (start != "[" and PurePath(source.name).suffix.lower() in LINES)
    if is_object and (rows := _whole_lines(source, encoding)) is not None:
        return *rows, f"JSON Lines, {encoding.name}"
    with encoding.open(source) as text:
        whole = text.read()
        if start == "[":
            _check_array(whole, source.name)
        elif whole.count(",") > MAX_VALUES:
            raise _too_many_values(source.name)
        try:
            value = _loads(whole)
        except ValueError as error:
            value = _in_turn(whole, source.name)
            if value is None and is_object:
                return *_apart(json_lines(source, encoding)), f"JSON Lines, {encoding.name}"
            if value is None:
                return [], [Refused(getattr(error, "lineno", 1), _no_json(error), ())], ""
    records = _records(value)
    if records is None:
        if isinstance(value, dict):
            return [(1, value)] if value else [], [], f"JSON, {encoding.name}"
        return [], [Refused(1, "It is no array of objects; give one object a row.", ())], ""
    rows_: list[Numbered] = []
    refused: list[Refused] = []
    for number, row in enumerate(records, 1):
        _sort_out(number, row, json.dumps(row), rows_, refused)
    return rows_, refused, f"JSON, {encoding.name}"


def _check_nesting(source: Source) -> None:
    """Raise ``ValueError`` when a file would be mostly lists and objects, which take 30 times its size."""
    n_bytes = n_nested = 0
    for chunk in source.chunks():
        n_bytes += len(chunk)
        n_nested += chunk.count(b"[") + chunk.count(b"{")
    if n_nested > MAX_NESTED and n_nested * _LEAST_BYTES > n_bytes:
        raise ValueError(
            f"{source.name} has over {MAX_NESTED:,} lists and objects with hardly anything in them; leave "
            "out columns that are no context or label."
        )


def _check_array(text: str, name: str) -> None:
    """Raise ``ValueError`` when an array has too many values for its width, before all of them are made."""
    decode = json.JSONDecoder().raw_decode
    names: set[str] = set()
    n_rows = n_values = 0
    at = text.index("[") + 1
    while (between := _BETWEEN.match(text, at)) is not None:
        try:
            row, at = decode(text, between.end())
        except (ValueError, RecursionError):
            return  # its end, or no JSON
        n_rows += 1
        n_values += max(1, len(row)) if isinstance(row, dict | list) else 1
        if isinstance(row, dict):
            names.update(row)
            check_size(len(names), n_rows)
        if n_values > MAX_VALUES and not (isinstance(row, dict) and 0 < len(row) <= _NARROW):
            raise _too_many_values(name)


def _in_turn(text: str, name: str) -> list[dict[str, Any]] | None:
    """Return the rows of objects or arrays that stand behind each other, as ``jq`` writes them.

    ``None`` where the text has anything else.

    >>> _in_turn('{"a": 1}, {"a": 2},', ""), _in_turn('["a"] ["b"]', "")
    ([{'a': 1}, {'a': 2}], [{'column 1': 'a'}, {'column 1': 'b'}])
    >>> _in_turn('{"a": 1} b', "")
    """
    if text.count(",") > MAX_VALUES:
        raise _too_many_values(name)
    decode = json.JSONDecoder(object_pairs_hook=_object).raw_decode
    values: list[Any] = []
    at = 0
    while (between := _BETWEEN.match(text, at)) is not None and between.end() < len(text):
        try:
            value, at = decode(text, between.end())
        except (ValueError, RecursionError):
            return None
        values.append(value)
    return _of_list(values)


def _too_many_values(name: str) -> ValueError:
    return ValueError(
        f"{name} has over {MAX_VALUES:,} values in one piece. Write an object a row, as JSON Lines, and "
        "leave out columns that are no context or label."
    )


def _records(value: Any) -> list[dict[str, Any]] | None:
    """Return the rows of JSON in any form that programs write: by row, column, index or split.

    >>> _records({"text": {"0": "a", "1": "b"}}) == _records({"text": ["a", "b"]})
    True
    >>> _records({"train": [{"text": "a"}], "test": [{"text": "b"}]})
    [{'text': 'a', 'split': 'train'}, {'text': 'b', 'split': 'test'}]
    """
    if isinstance(value, list):
        return _of_list(value)
    if not isinstance(value, dict):
        return None
    forms = (_of_array, _of_splits, _of_columns, _of_objects, _of_only_rows, _of_names)
    return next((rows for form in forms if (rows := form(value)) is not None), None)


def _of_array(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of the one array, or object of rows, that an object has; cells have names beside."""
    if isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
        return _of_list(value["data"], list(map(str, value["columns"])))
    lists = [part for part in value.values() if isinstance(part, list)]
    if len(lists) == 1 and all(isinstance(row, dict) for row in lists[0]):
        return lists[0]
    parts = [part for part in value.values() if isinstance(part, list | dict)]
    if len(parts) != 1:
        return None
    if len(value) > 1:
        return _records(parts[0])
    # One column is an object too, of cells.
    if not isinstance(parts[0], dict):
        return None
    forms = (_of_array, _of_splits, _of_columns, _of_only_rows)
    return next((rows for form in forms if (rows := form(parts[0])) is not None), None)


def _of_splits(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    splits = [
        (split, _records(part))
        for name, part in value.items()
        if (split := split_of(PurePath(name))) is not None
    ]
    if len(splits) < 2 or any(rows is None for _, rows in splits):
        return None
    return [
        {**row, "split": row.get("split", split)} for split, rows in splits for row in rows or ()
    ]


def _of_columns(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    parts = list(value.values())
    if not all(isinstance(part, list) for part in parts) or len(set(map(len, parts))) != 1:
        return None
    return [dict(zip(value, cells, strict=True)) for cells in zip(*parts, strict=True)]


def _of_only_rows(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the one list of objects that an object has beside lists of other things."""
    lists = [
        part
        for part in value.values()
        if isinstance(part, list) and part and all(isinstance(row, dict) for row in part)
    ]
    named = [value[name] for name in _LISTS if any(value.get(name) is part for part in lists)]
    return next((part[0] for part in (lists, named) if len(part) == 1), None)


def _of_names(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of labels by their texts, or of texts by their labels.

    >>> _of_names({"a b": "x", "c d": "x"})
    [{'text': 'a b', 'label': 'x'}, {'text': 'c d', 'label': 'x'}]
    >>> _of_names({"x": ["a b", "c d"], "y": ["e f"]})[-1]
    {'text': 'e f', 'label': 'y'}
    """
    parts = list(value.values())
    if all(isinstance(part, str) for part in parts):
        is_labels = len(set(parts)) < len(parts) and all(" " in name.strip() for name in value)
        return (
            [{"text": name, "label": part} for name, part in value.items()] if is_labels else None
        )
    if len(parts) < 2 or not all(isinstance(part, list) and part for part in parts):
        return None
    if not all(isinstance(text, str) for part in parts for text in part):
        return None
    return [{"text": text, "label": name} for name, part in value.items() for text in part]


def _of_list(rows: list[Any], names: list[str] | None = None) -> list[dict[str, Any]] | None:
    """Return the rows of an array: objects, or arrays of cells in the order of the names."""
    if all(isinstance(row, dict) for row in rows):
        return rows
    if not all(isinstance(row, list) for row in rows) or len(set(map(len, rows))) != 1:
        return None
    if names is None and (names := _header(rows)) is not None:
        rows = rows[1:]
    names = names or [f"column {number}" for number in range(1, len(rows[0]) + 1)]
    return (
        [dict(zip(names, row, strict=True)) for row in rows] if len(names) == len(rows[0]) else None
    )


def _header(rows: list[list[Any]]) -> list[str] | None:
    """Return the first of arrays of cells where it has names: words that stand above values that repeat."""
    first, below = rows[0], rows[1:]
    if not all(isinstance(name, str) and name.isidentifier() for name in first):
        return None
    columns = [list(map(str, cells)) for cells in zip(*below, strict=True)]
    is_above = any(2 * len(set(cells)) <= len(cells) for cells in columns) and not any(
        name in cells for name, cells in zip(first, columns, strict=True)
    )
    return first if is_above and len(set(first)) == len(first) else None


def _of_objects(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of an object of objects: of columns by the index, or of rows."""
    parts = list(value.values())
    if not parts or not all(isinstance(part, dict) and part for part in parts):
        return None
    inner = list(dict.fromkeys(name for part in parts for name in part))
    if not set(inner).intersection(*parts):
        return None
    # An index is of numbers; where it is of texts, there are more rows than columns.
    is_outer, is_inner = (all(name.isdecimal() for name in names) for names in (value, inner))
    if is_outer > is_inner or (is_outer == is_inner and len(parts) >= len(inner)):
        if "text" not in inner and all(" " in name.strip() for name in value):
            return [{"text": name, **part} for name, part in value.items()]
        return parts
    return [{name: part.get(row) for name, part in value.items()} for row in inner]


def table_of(rows: Sequence[Numbered], refused: list[Refused], read_as: str) -> Table:
    """Return objects as a table that has a column for each name; those in an envelope are unpacked."""
    for name in (*_ENVELOPES, *_RECORDS) if rows else ():
        if all(isinstance(row.get(name), dict) for _, row in rows) and (
            name in _ENVELOPES or not any(map(_has_text, (row for _, row in rows)))
        ):
            rows = [(number, {**row.pop(name), **row}) for number, row in rows]
    names = tuple(dict.fromkeys(name for _, row in rows for name in row))
    check_size(len(names), len(rows))
    columns, notes = unique_names(names)
    cells = [(number, [row.get(name) for name in names]) for number, row in rows]
    return Table(columns, cells, refused, read_as, notes)


def _has_text(row: dict[str, Any]) -> bool:
    return any(isinstance(value, str) and " " in value.strip() for value in row.values())


def structure_of(cell: Any) -> Any:
    """Return the list or object in a text, written as JSON, or as Python or NumPy shows it.

    >>> structure_of('{"choices": ["a"]}'), structure_of("['a', 'b']"), structure_of("[a] b")
    ({'choices': ['a']}, ['a', 'b'], '[a] b')
    >>> structure_of("['a' 'b']"), structure_of("[0 27]")
    (['a', 'b'], [0, 27])
    """
    if not isinstance(cell, str) or len(cell) > _LONGEST_STRUCTURE:
        return cell
    text = cell.strip()
    if text[:1] + text[-1:] not in ("[]", "{}", "()"):
        return cell
    if _ARRAY.fullmatch(text):
        text = f"[{','.join(_ITEM.findall(text))}]"
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, set | tuple):
            value = sorted(value, key=str) if isinstance(value, set) else list(value)
        if isinstance(value, list | dict):
            return value
    return cell


def json_lines(
    source: Source, encoding: Encoding, *, is_raw: bool = False
) -> Iterator[Numbered | Refused]:
    """Yield the object of each line, or why there is none; ``is_raw`` keeps values as they are written."""
    with encoding.open(source) as text:
        number = 0
        joined = ""
        for line in text:
            # Other line ends than \n are part of a line of JSON.
            joined += line
            if not joined.endswith("\n"):
                continue
            number += 1
            if row := _row(number, joined, is_raw=is_raw):
                yield row
            joined = ""
        if joined and (row := _row(number + 1, joined, is_raw=is_raw)):
            yield row


def _row(number: int, line: str, *, is_raw: bool) -> Numbered | Refused | None:
    if line.isspace():
        return None
    raw = line.rstrip("\r\n")
    if line.count(",") > MAX_VALUES:
        raise _too_many_values(f"Line {number}")
    if not line.isascii() and has_lone_surrogate(line):
        return Refused(number, wrong_characters([line]), (raw,))
    try:
        row = _loads(line)
        if is_raw and isinstance(row, dict):
            return number, decode(line, dict[str, msgspec.Raw])
    except (ValueError, msgspec.MsgspecError) as error:
        return Refused(number, _no_json(error), (raw,))
    if not isinstance(row, dict):
        return Refused(number, "It is no JSON object; give one a line.", (raw,))
    reason = _surrogates(row) if "\\u" in line else None
    return Refused(number, reason, (raw,)) if reason else (number, row)


def _whole_lines(source: Source, encoding: Encoding) -> tuple[list[Numbered], list[Refused]] | None:
    """Return the rows of a file that begins with an object on a line; ``None`` of any other."""
    lines = json_lines(source, encoding)
    first = next(lines, None)
    if first is None or isinstance(first, Refused):
        return None
    second = next(lines, None)
    if second is None:
        return None  # one object may have the rows in an array
    return _apart(chain((first, second), lines))


def _apart(lines: Iterable[Numbered | Refused]) -> tuple[list[Numbered], list[Refused]]:
    """Return the rows and the other items."""
    rows: list[Numbered] = []
    refused: list[Refused] = []
    names: set[str] = set()
    for row in lines:
        if isinstance(row, Refused):
            refused.append(row)
            continue
        rows.append(row)
        names.update(row[1])
        check_size(len(names), len(rows))
    return rows, refused


def _sort_out(
    number: int, row: dict[str, Any], raw: str, rows: list[Numbered], refused: list[Refused]
) -> None:
    reason = _surrogates(row) if "\\u" in raw else None
    if reason is None:
        rows.append((number, row))
    else:
        refused.append(Refused(number, reason, (raw,)))


def _no_json(error: Exception) -> str:
    """Return why a text is not valid JSON, without the line number."""
    if isinstance(error, json.JSONDecodeError):
        return f"It is no JSON at character {error.colno}: {error.msg}."
    return f"It is no JSON: {error}."


def _surrogates(row: dict[str, Any]) -> str | None:
    for name, value in row.items():
        text = json.dumps([name, value], ensure_ascii=False)
        if has_lone_surrogate(text):
            shown = name if not has_lone_surrogate(name) else "A name"
            return f"{shown} has a lone UTF-16 surrogate; send whole characters."
    return None


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        name = next(name for name in names if names.count(name) > 1)
        raise _RepeatedNameError(f"the name {name!r} is there twice; give each once")
    return made
