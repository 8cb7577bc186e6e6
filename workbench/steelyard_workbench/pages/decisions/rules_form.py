"""Fields and rules of a version as lines of text: ``amount: decimal``, ``refund if p.refund > .9``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import panel as pn
import panel_material_ui as pmui

from steelyard.errors import InvalidRequestError
from steelyard.named.content import rulebook_of
from steelyard_workbench.kit.basics import Boxed, small_text, stack
from steelyard_workbench.kit.problems import problem_of, typed
from steelyard_workbench.kit.views import failed
from steelyard_workbench.kit.words import escape_markdown

_ABOUT = (
    "Fields come with each text, such as *amount: decimal* or *country: text, optional*; also integer, "
    "boolean and date. The first rule that holds gives the action, such as *refund if p.refund > .9 and "
    "amount < 50*; the last line is *else person*. Rules compare fields, probabilities (*p*), the likeliest "
    "outcome (*top*) and the policy's *action*, with *and*, *or*, *not* and *in*."
)
#: By type of a field, a value that requests may have.
EXAMPLE_VALUES: Mapping[str, Any] = {
    "integer": 3,
    "decimal": 120.5,
    "text": "AT",
    "boolean": True,
    "date": "2026-10-01",
}
_OURS = ("fields", "rules", "otherwise")


class RulesForm(Boxed):
    """Two fields of lines, and what they say in words or what is wrong in them."""

    def __init__(
        self,
        content: Mapping[str, Any],
        on_change: Callable[..., None],
        on_typed: Callable[..., None],
    ) -> None:
        self._declared: Mapping[str, Any] = content.get("fields") or {}
        self.fields = _lines_field("Fields, one a line", write_fields(self._declared))
        self.rules = _lines_field("Rules, one a line", write_rules(content))
        self.words = stack()
        super().__init__()
        pn.bind(on_change, self.fields, self.rules, watch=True)
        shown = [field.param.value_input for field in (self.fields, self.rules)]
        pn.bind(on_typed, *shown, watch=True)
        is_used = any(content.get(name) for name in _OURS)
        about = small_text(_ABOUT)
        self._box = pmui.Accordion(
            ("Fields and rules", stack(about, self.fields, self.rules, self.words)),
            active=[0] if is_used else [],
            sizing_mode="stretch_width",
            title_variant="body1",
            margin=(6, 10),
        )

    def content(self) -> dict[str, Any]:
        """Return the fields, rules and the action of no rule; ``None`` where there are none."""
        fields = read_fields(typed(self.fields), self._declared)
        rules, otherwise = read_rules(typed(self.rules))
        return {"fields": fields or None, "rules": rules or None, "otherwise": otherwise}

    def check(self, content: Mapping[str, Any]) -> None:
        """Show the rules of a content in words, or what is wrong in them."""
        try:
            book = rulebook_of(content)
        except InvalidRequestError as error:
            self.refuse(error)
            return
        lines = [] if book is None else book.in_words()
        items = [f"{number}. {escape_markdown(line)}" for number, line in enumerate(lines, start=1)]
        self.words[:] = [small_text("\n".join(items))] if items else []

    def refuse(self, error: InvalidRequestError) -> None:
        """Show what is wrong in fields and rules; problems of other parts are shown elsewhere."""
        of_rules = [each for each in error.violations if each.path[1:2] and each.path[1] in _OURS]
        self.words[:] = []
        if of_rules:
            refused = InvalidRequestError(violations=of_rules)
            self.words[:] = [failed(problem_of(refused, "Rules would be refused."))]


def _lines_field(label: str, text: str) -> pmui.TextAreaInput:
    return pmui.TextAreaInput(
        label=label, value=text, auto_grow=True, rows=3, sizing_mode="stretch_width"
    )


def write_fields(fields: Mapping[str, Any]) -> str:
    """Return declared fields as lines."""
    return "\n".join(
        f"{name}: {field['type']}{', optional' if field.get('optional') else ''}"
        for name, field in fields.items()
    )


def write_rules(content: Mapping[str, Any]) -> str:
    """Return a content's rules as lines."""
    lines = [f"{rule['action']} if {rule['when']}" for rule in content.get("rules") or ()]
    return "\n".join([*lines, f"else {content['otherwise']}"] if lines else lines)


def read_fields(text: str, before: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the fields of lines; their descriptions stay as they were ``before``.

    >>> read_fields("amount: decimal", {"amount": {"type": "integer", "description": "in EUR"}})
    {'amount': {'type': 'decimal', 'description': 'in EUR'}}
    """
    fields: dict[str, dict[str, Any]] = {}
    for number, line in _lines(text):
        name, colon, about = (part.strip() for part in line.partition(":"))
        type_, _, rest = (part.strip() for part in about.partition(","))
        if not colon or rest not in {"", "optional"}:
            _refuse("fields", number, f"{line!r}; write a name and a type, as in amount: decimal")
        if name in fields:
            _refuse("fields", number, f"{name} again; declare each field once")
        field: dict[str, Any] = {"type": type_}
        if rest:
            field["optional"] = True
        if description := before.get(name, {}).get("description"):
            field["description"] = description
        fields[name] = field
    return fields


def read_rules(text: str) -> tuple[list[dict[str, str]], str | None]:
    r"""Return the rules of lines, and the action of no rule.

    >>> read_rules("refund if p.refund > .9\nelse person")
    ([{'when': 'p.refund > .9', 'action': 'refund'}], 'person')
    """
    rules: list[dict[str, str]] = []
    otherwise = None
    for number, line in _lines(text):
        if otherwise is not None:
            _refuse("rules", number, "a line after else; make else the last one")
        action, has_if, when = (part.strip() for part in line.partition(" if "))
        if line.startswith("else "):
            otherwise = line.removeprefix("else ").strip()
        elif has_if:
            rules.append({"when": when, "action": action})
        else:
            _refuse("rules", number, f"{line!r}; write ACTION if CONDITION, or else ACTION")
    return rules, otherwise


def _lines(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.splitlines(), start=1)
    return [(number, line.strip()) for number, line in lines if line.strip()]


def _refuse(part: str, number: int, message: str) -> NoReturn:
    raise InvalidRequestError.at(("body", part), f"Line {number} of {part} has {message}.", "lines")
