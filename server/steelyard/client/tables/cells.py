"""The content of a table's cell: plain values, and names of outcomes."""

from __future__ import annotations

import json
from typing import Any

from steelyard.imports.objects import structure_of

#: What programs write for no value.
_NO_VALUES = frozenset({"nan", "null", "#n/a", "<na>", r"\n"})
#: Where programs put the name, or the names, that were chosen.
_CHOSEN = ("choices", "taxonomy", "labels", "label")


def plain(value: Any) -> Any:
    """Return a cell as JSON has it."""
    if value is None or isinstance(value, str | bool | int | dict | list):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124
    return value.decode() if isinstance(value, bytes) else str(value)


def answer_of(cell: Any) -> Any:
    """Return a cell's answer: a name, a list of names, or the share of each.

    Programs write ``{"choices": […]}``, ``{"label": …, "score": …}``, or a list of these with a score each.

    >>> answer_of('{"choices": ["a", "b"]}'), answer_of([{"label": "a", "score": 0.2}])
    (['a', 'b'], 'a')
    >>> answer_of('{"a": 0.5, "b": 0.5}')
    {'a': 0.5, 'b': 0.5}
    """
    value = structure_of(cell)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        if all("label" in item and "score" in item for item in value):
            return max(value, key=lambda item: item["score"] or 0)["label"]
        return [name for item in value for name in _as_list(answer_of(item))]
    if isinstance(value, dict):
        return next((value[name] for name in _CHOSEN if name in value), value)
    if isinstance(value, list) and not all(isinstance(item, str | int | float) for item in value):
        return cell
    return value


def label_names(cell: Any) -> list[str]:
    """Return the names of outcomes in a cell: of a list each; none where there is no value."""
    answer = answer_of(cell)
    if isinstance(answer, dict):
        return list(answer)
    texts = map(text_of, _as_list(answer))
    return [text for text in dict.fromkeys(texts) if text and text.lower() not in _NO_VALUES]


def _as_list(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else [answer]


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
