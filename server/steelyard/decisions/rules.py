"""Rules over typed fields and the probabilities of an answer: checked once, evaluated exactly; pure.

A condition has the grammar of a Python expression, of which comparisons, ``and``, ``or``, ``not`` and
``in`` are allowed. Python's parser reads it and the walk here makes functions of the parts that it
knows; nothing is ever run as Python. Numbers are decimals. A comparison with a field that is missing
neither holds nor fails, so that no rule acts by it, with or without ``not``.
"""

from __future__ import annotations

import ast
import keyword
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from steelyard.decisions.rules_wire import MAX_TEXT, FieldInput, RuleInput, RuleResult
from steelyard.decisions.wire import ABSTAIN
from steelyard.wire.violations import BODY, Violations, show

if TYPE_CHECKING:
    from steelyard.decisions.kinds import Decision
    from steelyard.decisions.wire import DecisionResult

#: How deep conditions nest, and the most values of a list.
_MAX_DEPTH, _MAX_LISTED = 16, 100
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DECIMAL = re.compile(r"-?(\d{1,24}(\.\d{0,24})?|\.\d{1,24})", re.ASCII)
#: Integers that every JSON reader keeps.
_LARGEST_INTEGER = 2**53 - 1
_LITERALS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
#: Names that no field may have.
RESERVED = frozenset((*keyword.kwlist, *_LITERALS, "p", "top", "action"))

_Kind = Literal["number", "text", "boolean", "date", "null"]
_KINDS: Mapping[str, _Kind] = {
    "integer": "number",
    "decimal": "number",
    "text": "text",
    "boolean": "boolean",
    "date": "date",
}
_FORMS = {
    "integer": "a whole number such as 3",
    "decimal": "a number such as 120.5, or a text such as 120.50",
    "text": f"a text of at most {MAX_TEXT} characters",
    "boolean": "true or false",
    "date": "a date such as 2026-10-01",
}
_ORDERS: Mapping[type[ast.cmpop], tuple[Callable[[Any, Any], bool], str, str]] = {
    ast.Gt: (operator.gt, "above", "after"),
    ast.GtE: (operator.ge, "at least", "on or after"),
    ast.Lt: (operator.lt, "below", "before"),
    ast.LtE: (operator.le, "at most", "on or before"),
}
_EQUALITIES: Mapping[type[ast.cmpop], tuple[Callable[[Any, Any], bool], str, str]] = {
    ast.Eq: (operator.eq, "is", "is"),
    ast.NotEq: (operator.ne, "is not", "is not"),
}
_COMPARISONS = {**_ORDERS, **_EQUALITIES}
_NULL_TESTS = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)
_FLIPPED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
}
#: Of signs of other languages, what to write in their place.
_HINTS = {
    "=": "write == to compare",
    "&": "write and",
    "|": "write or",
    "!": "write not, or != to compare",
    "between": "write 10 <= amount <= 50",
    "?": "write one rule for each action",
}


class RuleError(ValueError):
    """A condition that cannot be used, and the column at which it fails."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """An answer with the fields of its request, as conditions read them."""

    results: Mapping[str, DecisionResult]
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of a condition: its kind, its words, and its value of an answer."""

    kind: _Kind
    words: str
    value: Callable[[_Answered], Any]
    is_literal: bool = False
    is_optional: bool = False
    #: All values that it may have; empty where any.
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Rule:
    action: str
    holds: Callable[[_Answered], bool | None]
    words: str


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The declared fields of a version, and its rules in their order."""

    fields: Mapping[str, FieldInput]
    rules: tuple[_Rule, ...] = ()
    otherwise: str = ""

    def check(self, given: Mapping[str, Any], of: str) -> None:
        """Refuse values of fields that are unknown, missing or of another type; ``of`` has the fields."""
        violations = Violations()
        path = (*BODY, "fields")
        for name, value in given.items():
            if name not in self.fields:
                known = [f"{known} ({field.type})" for known, field in self.fields.items()]
                advice = f"it has {', '.join(known)}" if known else "leave it out"
                violations.add((*path, name), f"is no field of {of}; {advice}.", "unknown_field")
            elif value is not None and _convert(value, self.fields[name]) is None:
                form = _FORMS[self.fields[name].type]
                violations.add((*path, name), f"is {show(value)}; give {form}.", "wrong_type")
        for name, field in self.fields.items():
            if given.get(name) is None and not field.optional:
                violations.add(
                    (*path, name), f"is missing; {of} needs {_FORMS[field.type]}.", "missing"
                )
        violations.raise_if_any()

    def decide(
        self, results: Mapping[str, DecisionResult], given: Mapping[str, Any]
    ) -> RuleResult | None:
        """Return the action of the first rule that holds; ``None`` where there are no rules."""
        if not self.rules:
            return None
        fields = {
            name: _convert(value, self.fields[name])
            for name, value in given.items()
            if value is not None
        }
        answered = _Answered(results, fields)
        for number, rule in enumerate(self.rules, start=1):
            if rule.holds(answered):
                return RuleResult(action=rule.action, number=number, why=rule.words)
        n_rules = len(self.rules)
        why = "the rule does not hold" if n_rules == 1 else f"none of the {n_rules} rules holds"
        return RuleResult(action=self.otherwise, number=None, why=why)

    def in_words(self) -> list[str]:
        """Return a line for each rule, such as ``refund where amount below 50``, and one for the rest."""
        if not self.rules:
            return []
        lines = [f"{rule.action} where {rule.words}" for rule in self.rules]
        return [*lines, f"{self.otherwise} otherwise"]


def read_rulebook(
    fields: Mapping[str, FieldInput],
    rules: Sequence[RuleInput],
    otherwise: str | None,
    decisions: Sequence[Decision],
) -> Rulebook:
    """Return declared fields with rules over them, or refuse everything that is wrong in them."""
    violations = Violations()
    for name in fields:
        if name in RESERVED:
            predicate = "has a name that conditions use otherwise; take another name."
            violations.add((*BODY, "fields", name), predicate, "reserved")
        elif _NAME.fullmatch(name) is None:
            predicate = (
                "has a name in another form; use small letters, digits and _, the first a letter."
            )
            violations.add((*BODY, "fields", name), predicate, "wrong_form")
    read: list[_Rule] = []
    for place, rule in enumerate(rules):
        try:
            condition = _Reader(rule.when, fields, decisions).read()
            read.append(_Rule(rule.action, condition.value, condition.words))
        except RuleError as error:
            violations.add((*BODY, "rules", place, "when"), f"{error}.", "wrong_form")
    if rules and otherwise is None:
        predicate = "is missing; name the action where no rule holds, such as person."
        violations.add((*BODY, "otherwise"), predicate, "missing")
    elif otherwise is not None and not rules:
        violations.add((*BODY, "otherwise"), "goes with rules; leave it out.", "refused")
    violations.raise_if_any()
    return Rulebook(fields, tuple(read), otherwise or "")


def without_texts(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of fields that are stored without texts: numbers, true and false."""
    return {name: value for name, value in given.items() if not isinstance(value, str)}


def _convert(value: Any, field: FieldInput) -> Any:
    """Return a value as conditions compare it; ``None`` where it is of another type."""
    type_ = field.type
    if isinstance(value, bool):
        return value if type_ == "boolean" else None
    if isinstance(value, str):
        return _convert_text(value, type_)
    if not isinstance(value, int | float) or abs(value) > _LARGEST_INTEGER:
        return None
    if isinstance(value, int):
        return Decimal(value) if type_ in {"integer", "decimal"} else None
    # The shortest decimal that is this double, which is the one that was sent.
    return Decimal(repr(float(value))) if type_ == "decimal" else None


def _convert_text(text: str, type_: str) -> Any:
    if type_ == "text":
        return text if len(text) <= MAX_TEXT else None
    if type_ == "date":
        return _read_date(text)
    is_good = type_ == "decimal" and _DECIMAL.fullmatch(text) is not None
    return Decimal(text) if is_good else None


def _read_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


class _Reader:
    """Reads one condition, to functions of the parts that are allowed."""

    def __init__(
        self, text: str, fields: Mapping[str, FieldInput], decisions: Sequence[Decision]
    ) -> None:
        self._text = text.lstrip()
        self._skipped = len(text) - len(self._text)
        self._fields = fields
        self._decisions = {decision.id: decision for decision in decisions}

    def read(self) -> _Term:
        """Return the condition."""
        if "\\" in self._text:
            self._refuse_at(self._text.index("\\"), "has a backslash", "write texts without one")
        try:
            return self._condition(ast.parse(self._text, mode="eval").body, 0)
        except SyntaxError as error:
            self._refuse_syntax(error)
        except (RecursionError, MemoryError):
            raise RuleError("nests too deep; write it as several rules") from None

    def _refuse_syntax(self, error: SyntaxError) -> NoReturn:
        # Where the text ends too early, Python names a place behind it, or none.
        is_end = error.lineno != 1 or not error.offset
        place = len(self._text) if is_end else (error.offset or 1) - 1
        rest = self._text[place:]
        hint = "a comparison such as amount < 50, and, or or not is expected"
        if not rest.strip():
            hint = "it ends too early; a name, a number or a text in quotes is expected"
        advice = (text for sign, text in _HINTS.items() if rest.startswith(sign))
        self._refuse_at(place, "cannot be read", next(advice, hint))

    def _refuse(self, node: ast.expr, predicate: str, advice: str) -> NoReturn:
        # Python counts bytes of UTF-8.
        before = self._text.encode()[: node.col_offset]
        self._refuse_at(len(before.decode(errors="ignore")), predicate, advice)

    def _refuse_at(self, place: int, predicate: str, advice: str) -> NoReturn:
        raise RuleError(f"{predicate} at column {self._skipped + place + 1}; {advice}") from None

    def _refuse_name(self, node: ast.expr, known: Sequence[str]) -> NoReturn:
        source = self._source(node)
        self._refuse(node, f"names {source}, which is not there,", f"use one of {', '.join(known)}")

    def _source(self, node: ast.expr) -> str:
        return ast.get_source_segment(self._text, node) or ""

    def _condition(self, node: ast.expr, depth: int) -> _Term:
        """Return a part that holds, fails or, where a field is missing, does neither."""
        if depth > _MAX_DEPTH:
            self._refuse(node, f"nests deeper than {_MAX_DEPTH}", "write it as several rules")
        if isinstance(node, ast.BoolOp):
            return self._joined(node, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._condition(node.operand, depth + 1)
            words = f"not ({inner.words})" if " " in inner.words else f"not {inner.words}"
            holds = inner.value

            def fails(answered: _Answered) -> bool | None:
                value = holds(answered)
                return None if value is None else not value

            return _Term("boolean", words, fails)
        if isinstance(node, ast.Compare):
            return self._compared(node)
        term = self._term(node)
        if term.kind != "boolean" or term.is_literal:
            advice = "compare it, as in amount < 50"
            self._refuse(node, f"has {term.words} ({_a(term.kind)}) for a condition", advice)
        return term

    def _joined(self, node: ast.BoolOp, depth: int) -> _Term:
        parts = [self._condition(value, depth + 1) for value in node.values]
        holds = [part.value for part in parts]
        if isinstance(node.op, ast.Or):
            return _Term(
                "boolean", " or ".join(part.words for part in parts), _joined_by(True, holds)
            )
        words = [
            f"({part.words})" if _is_or(value) else part.words
            for part, value in zip(parts, node.values, strict=True)
        ]
        return _Term("boolean", " and ".join(words), _joined_by(False, holds))

    def _compared(self, node: ast.Compare) -> _Term:
        nodes = [node.left, *node.comparators]
        pairs = [
            self._pair(left, op, right)
            for left, op, right in zip(nodes, node.ops, nodes[1:], strict=False)
        ]
        words = " and ".join(pair.words for pair in pairs)
        if [type(op) for op in node.ops] == [ast.LtE, ast.LtE]:
            low, middle, high = (self._term(each).words for each in nodes)
            words = f"{middle} between {low} and {high}".replace('"', "")
        return _Term("boolean", words, _joined_by(False, [pair.value for pair in pairs]))

    def _pair(self, left_node: ast.expr, op: ast.cmpop, right_node: ast.expr) -> _Term:
        if type(op) not in {*_COMPARISONS, ast.Is, ast.IsNot}:
            return self._membership(left_node, right_node, is_in=isinstance(op, ast.In))
        left, right = self._term(left_node), self._term(right_node)
        if right.kind == "null" and isinstance(op, _NULL_TESTS):
            return self._presence(left_node, left, is_there=isinstance(op, ast.NotEq | ast.IsNot))
        comparison = _COMPARISONS.get(type(op))
        if comparison is None:
            self._refuse(right_node, "has is before a value", "write == to compare")
        if left.is_literal and right.is_literal:
            self._refuse(left_node, "compares two constants", "compare a field or a probability")
        if left.is_literal:
            left = self._fitted(left, right, left_node)
        else:
            right = self._fitted(right, left, right_node)
        if type(op) in _ORDERS and left.kind not in {"number", "date"}:
            advice = "use == or in"
            self._refuse(left_node, f"orders {left.words}, {_a(left.kind)},", advice)
        compare, number_word, date_word = comparison
        left_value, right_value = left.value, right.value

        def holds(answered: _Answered) -> bool | None:
            values = left_value(answered), right_value(answered)
            return None if None in values else compare(*values)

        first, second = left, right
        if left.is_literal:
            first, second = right, left
            _, number_word, date_word = _COMPARISONS[_FLIPPED.get(type(op), type(op))]
        word = date_word if left.kind == "date" else number_word
        return _Term("boolean", f"{first.words} {word} {second.words}", holds)

    def _membership(self, left_node: ast.expr, node: ast.expr, *, is_in: bool) -> _Term:
        left = self._term(left_node)
        if not isinstance(node, ast.List | ast.Tuple | ast.Set):
            self._refuse(node, "has no list after in", 'write one, such as in ["AT", "DE"]')
        if not 1 <= len(node.elts) <= _MAX_LISTED:
            advice = f"give 1 to {_MAX_LISTED}"
            self._refuse(node, f"has a list of {len(node.elts)} values", advice)
        items = [self._fitted(self._term(each), left, each) for each in node.elts]
        for item, each in zip(items, node.elts, strict=True):
            if not item.is_literal:
                self._refuse(each, f"lists {item.words}", "list constants alone")
        empty = _Answered({}, {})
        values = frozenset(item.value(empty) for item in items)
        value = left.value

        def holds(answered: _Answered) -> bool | None:
            given = value(answered)
            return None if given is None else (given in values) is is_in

        *most, last = (item.words for item in items)
        listed = f"{', '.join(most)} or {last}" if most else last
        return _Term("boolean", f"{left.words} {'is' if is_in else 'is not'} {listed}", holds)

    def _presence(self, node: ast.expr, term: _Term, *, is_there: bool) -> _Term:
        if not term.is_optional:
            self._refuse(
                node, f"compares {term.words} with null", "only an optional field may be missing"
            )
        value = term.value
        words = f"{term.words} is {'given' if is_there else 'missing'}"
        return _Term("boolean", words, lambda answered: (value(answered) is not None) is is_there)

    def _fitted(self, term: _Term, other: _Term, node: ast.expr) -> _Term:
        """Return a side of a comparison as the other one's kind, or refuse it."""
        if term.is_literal and term.kind == "text" and other.kind == "date":
            day = _read_date(term.value(_Answered({}, {})))
            if day is None:
                self._refuse(node, f"has {self._source(node)}", "write a date, as in 2026-10-01")
            return _Term("date", day.isoformat(), lambda _: day, is_literal=True)
        if term.kind != other.kind:
            self._refuse(
                node,
                f"compares {other.words} ({_a(other.kind)}) with {term.words} ({_a(term.kind)})",
                f"give {_a(other.kind)}",
            )
        if term.is_literal and other.options:
            text = term.value(_Answered({}, {}))
            if text not in other.options:
                known = ", ".join(other.options)
                self._refuse(node, f"has {show(text)}", f"{other.words} may be {known}")
        return term

    def _term(self, node: ast.expr) -> _Term:
        """Return a constant, a field, or a part of the answer."""
        constant = node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            constant = node.operand
        if isinstance(constant, ast.Constant):
            return self._constant(constant, node)
        steps = _steps(node)
        if steps is None:
            advice = "compare fields, p, top and action with and, or, not and in"
            self._refuse(node, f"has {show(self._source(node))}, which rules do not know,", advice)
        (name, _), *rest = steps
        if not rest and name in _LITERALS:
            return _literal(_LITERALS[name])
        if name in {"p", "top", "action"}:
            return self._answer_part(name, rest, node)
        field = self._fields.get(name)
        if field is None or rest:
            self._refuse_name(node, (*self._fields, "p", "top", "action"))
        return _Term(
            _KINDS[field.type],
            name,
            lambda answered: answered.fields.get(name),
            is_optional=bool(field.optional),
        )

    def _constant(self, node: ast.Constant, whole: ast.expr) -> _Term:
        value = node.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = self._source(whole).replace("_", "")
            if _DECIMAL.fullmatch(number) is None:
                self._refuse(whole, f"has {number}", "write a number such as 120.5")
            return _literal(Decimal(number))
        if node is not whole or not (value is None or isinstance(value, bool | str)):
            advice = "write a number such as 120.5, or a text in quotes"
            self._refuse(whole, f"has {self._source(whole)}", advice)
        return _literal(value)

    def _answer_part(
        self, name: str, steps: Sequence[tuple[str, ast.expr]], node: ast.expr
    ) -> _Term:
        """Return a probability, or the top outcome or the action of a question."""
        is_only = len(self._decisions) == 1
        if not is_only:
            if not steps or steps[0][0] not in self._decisions:
                self._refuse_name(node, [_step(name, id_) for id_ in self._decisions])
            (id_, _), *steps = steps
        else:
            (id_,) = self._decisions
        decision = self._decisions[id_]
        names = decision.outcomes.names
        if name == "p":
            prefix = "p" if is_only else _step("p", id_)
            if len(steps) != 1 or steps[0][0] not in names:
                self._refuse_name(node, [_step(prefix, each) for each in names])
            outcome = steps[0][0]
            words = _plain(outcome) if is_only else f"{_plain(outcome)} ({id_})"

            def probability(answered: _Answered) -> Decimal:
                return Decimal(repr(answered.results[id_].probabilities[outcome]))

            return _Term("number", words, probability)
        if steps:
            self._refuse_name(node, [name if is_only else _step(name, id_)])
        words = name if is_only else f"{name} of {id_}"
        if name == "top":
            return _Term("text", words, lambda answered: answered.results[id_].top, options=names)
        policy = decision.policy
        actions = (*((policy and policy.actions) or names), ABSTAIN)
        return _Term("text", words, lambda answered: answered.results[id_].action, options=actions)


def _steps(node: ast.expr) -> list[tuple[str, ast.expr]] | None:
    """Return the names of ``p.team.billing`` or ``p["team"]["billing"]``, with their nodes."""
    if isinstance(node, ast.Name):
        return [(node.id, node)]
    if isinstance(node, ast.Attribute):
        before = _steps(node.value)
        return None if before is None else [*before, (node.attr, node)]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        before = _steps(node.value)
        name = node.slice.value
        return None if before is None or not isinstance(name, str) else [*before, (name, node)]
    return None


def _step(before: str, name: str) -> str:
    is_plain = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
    return f"{before}.{name}" if is_plain else f"{before}[{show(name)}]"


def _literal(value: Decimal | str | bool | None) -> _Term:
    kind: _Kind = "null"
    words = "null"
    if isinstance(value, bool):
        kind, words = "boolean", str(value).lower()
    elif isinstance(value, Decimal):
        kind, words = "number", f"{value:f}"
    elif isinstance(value, str):
        kind, words = "text", _plain(value)
    return _Term(kind, words, lambda _: value, is_literal=True)


def _plain(text: str) -> str:
    return text if text.replace("_", "").isalnum() else show(text)


def _a(kind: str) -> str:
    return "null" if kind == "null" else f"a {kind}"


def _is_or(node: ast.expr) -> bool:
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)


def _joined_by(
    decisive: bool,
    conditions: Sequence[Callable[[_Answered], bool | None]],
) -> Callable[[_Answered], bool | None]:
    """Return conditions of which one that comes out as ``decisive`` settles all (Kleene, 1938)."""

    def holds(answered: _Answered) -> bool | None:
        values = [condition(answered) for condition in conditions]
        return decisive if decisive in values else None if None in values else not decisive

    return holds
