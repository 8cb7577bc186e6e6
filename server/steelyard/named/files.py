"""A named decision as a TOML file in a user's repository, with examples of right answers; pure.

TOML has no null: an empty description of an outcome or a level is none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import tomli_w
from msgspec import Meta, Struct

from steelyard.decisions.rules_wire import RuleResult
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import InvalidRequestError, Violation
from steelyard.named.content import fields_of, questions_of, read_content, rulebook_of
from steelyard.named.wire import DecisionName, NamedContent, NamedDecision, NamedVersion
from steelyard.wire.storing import StoreSetting

#: The most examples of a file.
MAX_EXAMPLES = 1_000


class FileExample(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A context with fields, and the actions that decisions and the rules are to give."""

    context: str | dict[str, Any] | list[Any]
    fields: dict[str, Any] | None = None
    expected: dict[str, str] = {}
    action: str | None = None


class Miss(NamedTuple):
    """An action of an example that came out otherwise; the rules' own is of ``rules``."""

    name: str
    expected: str
    action: str | None
    p_top: float | None = None


class DecisionFile(NamedContent, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A named decision as a file has it; ``dataset`` is the name of the dataset of its rows."""

    name: DecisionName
    description: str | None = None
    owner: str | None = None
    dataset: str | None = None
    dataset_id: str | None = None
    store: StoreSetting | None = None
    examples: Annotated[tuple[FileExample, ...], Meta(max_length=MAX_EXAMPLES)] = ()

    @property
    def content(self) -> dict[str, Any]:
        """The content of a version made of it."""
        return fields_of(self)

    @property
    def questions(self) -> dict[str, Any]:
        """Its content as a request asks it."""
        return questions_of(self.content)

    def misses(self, example: FileExample, answer: DecideResponse) -> list[Miss]:
        """Return the actions of an example that an answer does not give."""
        misses: list[Miss] = []
        for name, expected in example.expected.items():
            result = answer.decisions.get(name)
            if result is None or result.action != expected:
                action, p_top = (None, None) if result is None else (result.action, result.p_top)
                misses.append(Miss(name, expected, action, p_top))
        if example.action is not None:
            rule: RuleResult | None = answer.rule or None
            if rule is None and (book := rulebook_of(self.content)) is not None:
                book.check(example.fields or {}, self.name)
                rule = book.decide(answer.decisions, example.fields or {})
            action = None if rule is None else rule.action
            if action != example.action:
                misses.append(Miss("rules", example.action, action))
        return misses

    @property
    def head(self) -> dict[str, Any]:
        """Its description, owner, dataset and storing."""
        head = {name: getattr(self, name) for name in _HEAD}
        return {**head, "dataset_id": self.dataset_id or self.dataset}


_File = TypeVar("_File", bound=DecisionFile)

_HEAD = ("description", "owner", "dataset_id", "store")


def read_file(text: str) -> DecisionFile:
    """Return the content of a file, or refuse it with all its problems."""
    return read_file_as(DecisionFile, text)


def read_file_as(shape: type[_File], text: str) -> _File:
    """Return the content of a file that has further fields of a shape."""
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"The file is not TOML: {error}. Correct it there."
        raise InvalidRequestError.at(("file",), message, "not_toml") from None
    file = read_content({**fields, "decisions": _each(fields.get("decisions"), None)}, shape)
    ids = [decision.id for decision in file.decisions]
    violations = [
        Violation(
            ("file", "examples", str(place), "expected", name),
            f"examples[{place}] expects something of {name!r}, which is not a decision here; there "
            f"are {', '.join(ids)}.",
            "unknown_decision",
        )
        for place, example in enumerate(file.examples)
        for name in example.expected
        if name not in ids
    ]
    violations += [
        Violation(
            ("file", "examples", str(place)),
            f"examples[{place}] expects nothing; give expected, or the action of the rules.",
            "missing",
        )
        for place, example in enumerate(file.examples)
        if not example.expected and example.action is None
    ]
    if violations:
        raise InvalidRequestError(violations=violations)
    return file


def write_file(
    decision: NamedDecision, version: NamedVersion, before: DecisionFile | None = None
) -> str:
    """Return a version on the server as a file, with the examples and dataset's name that it had."""
    head = {name: value for name in _HEAD if (value := getattr(decision, name)) is not None}
    if head["store"] == "on" and (before is None or before.store is None):
        del head["store"]
    examples = None
    if before is not None:
        examples = before.examples
        if before.dataset is not None and before.dataset_id is None:
            head.pop("dataset_id", None)
            head["dataset"] = before.dataset
    return to_toml({"name": decision.name, **head, **version.content}, examples)


def to_toml(fields: Mapping[str, Any], examples: Sequence[FileExample] | None = None) -> str:
    """Return fields of a file as TOML, the decisions last."""
    plain = {name: value for name, value in fields.items() if name != "decisions"}
    plain["decisions"] = _each(fields["decisions"], "")
    if examples:
        plain["examples"] = [
            {name: value for name, value in example.items() if value not in (None, {})}
            for example in msgspec.to_builtins(list(examples))
        ]
    return tomli_w.dumps(plain, multiline_strings=True)


def _each(decisions: Any, empty: str | None) -> Any:
    if not isinstance(decisions, list):
        return decisions
    return [_with_empty(decision, empty) for decision in decisions]


def _with_empty(decision: Any, empty: str | None) -> Any:
    """Return a decision whose descriptions that say nothing are ``empty``."""
    if not isinstance(decision, dict):
        return decision
    changed = dict(decision)
    outcomes, rubric = decision.get("outcomes"), decision.get("rubric")
    if isinstance(outcomes, dict):
        changed["outcomes"] = {name: text or empty for name, text in outcomes.items()}
    if isinstance(rubric, list):
        changed["rubric"] = [text or empty for text in rubric]
    return changed
