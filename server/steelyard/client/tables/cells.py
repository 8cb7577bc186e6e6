"""The content of a table's cell: plain values, and names of outcomes."""

from __future__ import annotations

import json
import re
from typing import Any

from steelyard.decisions.contexts import UNSEEN
from steelyard.imports.objects import structure_of

#: What programs write for no value.
_NO_VALUES = frozenset(
    {
        *("nan", "null", "#n/a", "<na>", r"\n"),
        *("#ref!", "#value!", "#name?", "#div/0!", "#num!", "#null!", "#error!"),
    }
)
#: Names in brackets without marks, as PostgreSQL and spreadsheets write lists.
_BARE_LIST = re.compile(r"""\[([^][{}"':]+)\]|\{([^][{}"':]+)\}""")
#: Where programs put the name, or the names, that were chosen, and how sure they are of it.
_CHOSEN = (
    *("choices", "taxonomy", "labels", "label", "name", "value", "class", "classname", "category"),
    "answer",
)
_SCORES = ("score", "confidence", "probability")
#: How far from 1 the sum of shares may be.
_NEAR_1 = 0.001


def plain(value: Any) -> Any:
    """Return a cell as JSON has it."""
    if value is None or isinstance(value, str | bool | int | dict | list):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124
    return value.decode() if isinstance(value, bytes) else str(value)


def answer_of(cell: Any) -> Any:
    """Return a cell's answer: a name, a list of names, or the share of each.

    Programs write ``{"choices": […]}``, ``{"label": …, "score": …}``, a list of these, of which the
    surest counts, the path of a name in a tree, or whether each name fits. An object that says no
    name comes back as it is.

    >>> answer_of('{"choices": ["a", "b"]}'), answer_of([{"name": "a", "confidence": 0.2}])
    (['a', 'b'], 'a')
    >>> answer_of('{"a": 0.5, "b": 0.5}'), answer_of({"a": True, "b": False})
    ({'a': 0.5, 'b': 0.5}, ['a'])
    >>> answer_of("{a,b}"), answer_of("('a', 'b')"), answer_of({"cats": {"a": 1, "b": 0}})
    (['a', 'b'], ['a', 'b'], {'a': 1, 'b': 0})
    """
    value = structure_of(cell)
    if isinstance(value, str) and (bare := _BARE_LIST.fullmatch(value.strip())):
        return [name.strip() for name in (bare[1] or bare[2]).split(",")]
    if isinstance(value, dict):
        return _answer_in(value)
    if not isinstance(value, list):
        return value
    if value and all(isinstance(item, dict) for item in value):
        scores = [_score_in(item) for item in value]
        if None not in scores:
            return answer_of(value[max(range(len(value)), key=lambda place: scores[place] or 0)])
        names = [name for item in value for name in _as_list(answer_of(item))]
        # Objects that say no name are no answer.
        return next((name for name in names if isinstance(name, dict)), names)
    names = [item[-1] if isinstance(item, list) and item else item for item in value]
    return names if all(isinstance(item, str | int | float) for item in names) else cell


def _answer_in(value: dict[str, Any]) -> Any:
    name = next((name for name in _CHOSEN if name in value), None)
    if name is not None and (_score_in(value) is not None or not are_shares(value)):
        return answer_of(value[name])
    if value and all(isinstance(fits, bool) for fits in value.values()):
        return [name for name, fits in value.items() if fits]
    alone = next(iter(value.values())) if len(value) == 1 else None
    return answer_of(alone) if isinstance(alone, str | dict | list) else value


def _score_in(value: dict[str, Any]) -> float | None:
    score = next((value[name] for name in _SCORES if name in value), None)
    return score if type(score) in (int, float) else None


def are_shares(answer: dict[str, Any]) -> bool:
    """Return whether an object has the share of each outcome, which sum to 1."""
    shares = list(answer.values())
    return all(type(share) in (int, float) for share in shares) and abs(sum(shares) - 1) < _NEAR_1


def are_flags(answer: dict[str, Any]) -> bool:
    """Return whether an object has 1 for each outcome that fits, and 0 for the others."""
    return all(fits in (0, 1) for fits in answer.values())


def label_names(cell: Any) -> list[str]:
    """Return the names of outcomes in a cell: of a list each; none where there is no value."""
    answer = answer_of(cell)
    if isinstance(answer, dict):
        return list(answer)
    texts = map(text_of, _as_list(answer))
    return [text for text in dict.fromkeys(texts) if text and text.lower() not in _NO_VALUES]


def _as_list(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else [answer]


def split_text(cell: Any) -> str:
    """Return the name of a row's split; in an object it is the one value.

    >>> split_text({"ml_use": "test"}), split_text("train")
    ('test', 'train')
    """
    return text_of(answer_of(cell) if isinstance(cell, dict) else cell)


def text_of(cell: Any) -> str:
    """Return a cell as an outcome's name; empty where there is no value."""
    value = plain(cell)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dict | list):
        return json.dumps(value)
    return UNSEEN.sub("", str(value)).strip()
