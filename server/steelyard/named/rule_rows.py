"""Rules of a version on rows: the fields that a row has, and how many rows each rule takes; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from steelyard.decisions.rules import Rulebook
from steelyard.decisions.rules_wire import RuleResult
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import DecisionResult
from steelyard.errors import InvalidRequestError

_BOOLEANS = {"true": True, "false": False}


class RuleCount(NamedTuple):
    """A rule, or what is done where none holds, and how many rows it takes."""

    number: int | None
    action: str
    why: str
    rows: int


def values_of(book: Rulebook, cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the declared fields in the cells of a row; a table has texts alone.

    >>> from steelyard.decisions.rules_wire import FieldInput
    >>> fields = {"days": FieldInput(type="integer"), "vip": FieldInput(type="boolean")}
    >>> values_of(Rulebook(fields), {"text": "Hi", "days": "3", "vip": "TRUE"})
    {'days': 3, 'vip': True}
    """
    return {
        name: _read_cell(cells[name], field.type)
        for name, field in book.fields.items()
        if cells.get(name) is not None and cells[name] != ""
    }


def apply_rules(
    book: Rulebook, results: Mapping[str, DecisionResult], cells: Mapping[str, Any], of: str
) -> RuleResult | None:
    """Return what the rules do about an answer; refuse cells that are not the fields of ``of``."""
    values = values_of(book, cells)
    book.check(values, of)
    return book.decide(results, values)


def rule_action(
    questions: ValidRequest, results: Mapping[str, DecisionResult], cells: Mapping[str, Any]
) -> str | None:
    """Return the action of a version's rules; ``None`` without rules, or the fields that they need."""
    book = questions.rulebook
    if book is None:
        return None
    try:
        rule = apply_rules(book, results, cells, "the version")
    except InvalidRequestError:
        return None
    return None if rule is None else rule.action


def count_rules(book: Rulebook, results: Iterable[RuleResult]) -> list[RuleCount]:
    """Return each rule in its order, then what is done where none holds, with their rows."""
    counts = Counter(result.number for result in results)
    rules = [
        RuleCount(number, rule.action, rule.words, counts[number])
        for number, rule in enumerate(book.rules, start=1)
    ]
    return [*rules, RuleCount(None, book.otherwise, "otherwise", counts[None])]


def _read_cell(cell: Any, type_: str) -> Any:
    if isinstance(cell, date):
        return cell.isoformat()[:10]
    if isinstance(cell, Decimal):
        return str(cell)
    if isinstance(cell, float) and type_ == "integer" and cell.is_integer():
        return int(cell)  # pandas has a column of whole numbers as these where one is missing
    return _read_text(cell.strip(), type_) if isinstance(cell, str) else cell


def _read_text(text: str, type_: str) -> Any:
    if type_ == "integer" and text.lstrip("-").isdecimal() and len(text) < 20:
        return int(text)
    return _BOOLEANS.get(text.lower(), text) if type_ == "boolean" else text
