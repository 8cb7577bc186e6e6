"""What a cell of a table says: plain values, and names of outcomes."""

from __future__ import annotations

import ast
import json
from typing import Any

#: What programs write for no value.
_NO_VALUES = frozenset({"nan", "null", "#n/a", "<na>", r"\n"})
#: Characters of a cell that is looked at as a list.
_LONGEST_LIST = 10_000


def plain(value: Any) -> Any:
    """Return a cell as JSON has it."""
    if value is None or isinstance(value, str | bool | int | dict | list):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124
    return value.decode() if isinstance(value, bytes) else str(value)


def label_names(cell: Any) -> list[str]:
    """Return the names of outcomes in a cell: of a list each; none where there is no value."""
    if isinstance(cell, str) and cell[:1] == "[" and (items := _listed(cell)) is not None:
        cell = items
    if isinstance(cell, list):
        texts = (text_of(item) for item in cell)
        return [text for text in dict.fromkeys(texts) if text and text.lower() not in _NO_VALUES]
    text = text_of(cell)
    return [] if not text or text.lower() in _NO_VALUES else [text]


def _listed(cell: str) -> list[Any] | None:
    """Return a list that a program wrote as text, in JSON or as Python shows it."""
    if len(cell) > _LONGEST_LIST or not cell.endswith("]"):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
            return value
    return None


def text_of(cell: Any) -> str:
    """Return a cell as an outcome's name; empty where there is no value."""
    value = plain(cell)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value) if isinstance(value, dict | list) else str(value).strip()
