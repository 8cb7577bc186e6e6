"""Names of labels that a table has as numbers: files of names, and labels that take them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.client.tables.labels import Label, question_of
from steelyard.client.tables.outcomes import count_values
from steelyard.imports.encodings import Source, find_encoding
from steelyard.imports.table import Table
from steelyard.wire.limits import MAX_OUTCOMES

_NUMBERED = re.compile(r"(-?\d+)\s*[,;:\t ]\s*(.+)")
_NUMBER = re.compile(r"-?\d+(\.0)?")


def read_names(file: str | Path, encoding: str | None = None) -> dict[str, str]:
    """Return the names of numbers that a file has.

    A name a line, from 0; or its number and the name a line, with a comma, colon or tab between; or
    JSON: a list of names, or an object of either to the other, alone or as ``id2label``,
    ``label2id`` or ``names``. Raise ``ValueError`` when it has no names, or one number twice.
    """
    source = Source(Path(file).name, Path(file))
    with find_encoding(source, encoding).open(source) as text:
        content = text.read()
    if content.lstrip()[:1] in ("[", "{"):
        try:
            pairs = _pairs_of(json.loads(content))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{source.name} is not JSON with names: {error}.") from error
    else:
        lines = [line.strip() for line in content.splitlines() if line.strip()]
        numbered = [_NUMBERED.fullmatch(line) for line in lines]
        if all(numbered):
            pairs = [(match[1], match[2]) for match in numbered if match]
        else:
            pairs = [(str(number), line) for number, line in enumerate(lines)]
    names = dict(pairs)
    if not names or len(names) < len(pairs) or not all(map(_NUMBER.fullmatch, names)):
        raise ValueError(
            f"{source.name} does not name numbers; write one name a line, the first for 0, or a number "
            "and its name a line."
        )
    return names


def _pairs_of(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        inner = next(
            (value[name] for name in ("id2label", "label2id", "names") if name in value), None
        )
        if inner is not None:
            return _pairs_of(inner)
        if value and all(isinstance(number, int) for number in value.values()):
            return [(str(number), str(name)) for name, number in value.items()]
        return [(str(number), str(name)) for number, name in value.items()]
    if not isinstance(value, list):
        raise ValueError("give a list, or an object with numbers and names")  # noqa: TRY004
    return [(str(number), str(name)) for number, name in enumerate(value)]


def name_values(table: Table, label: Label, names: Mapping[str, str]) -> Label:
    """Return a label whose outcomes have the names of its numbers; one that has others is as it was.

    A number without a name, as -1, is no outcome: rows that have it are refused.
    """
    values = count_values(table, label.column)
    if not values or not all(map(_NUMBER.fullmatch, values)):
        return label
    outcomes = tuple(dict.fromkeys(names.values()))
    if not 2 <= len(outcomes) <= MAX_OUTCOMES:
        raise ValueError(
            f"The names are {len(outcomes)}; outcomes are 2 to {MAX_OUTCOMES}. Give other names."
        )
    renamed = {value: names.get(value.removesuffix(".0"), "") for value in values}
    if label.kind == "several":
        return replace(label, outcomes=outcomes, renamed=renamed)
    is_guessed = label.question == question_of(label.column, label.kind)
    question = question_of(label.column, "single") if is_guessed else label.question
    return replace(label, kind="single", question=question, outcomes=outcomes, renamed=renamed)
