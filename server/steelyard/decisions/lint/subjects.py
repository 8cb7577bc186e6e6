"""The subject of a rule: one decision, read for its wording, and its request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from steelyard.decisions.contexts import ReadContext, read_context
from steelyard.decisions.kinds import Decision
from steelyard.decisions.lint.exits import is_way_out
from steelyard.decisions.lint.scales import name_scale
from steelyard.decisions.lint.sentences import QuestionText, read_question, texts_in
from steelyard.decisions.rendering import render_context, render_value
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.words import normalise, straighten

_YES_NO = frozenset(map(frozenset, (("yes", "no"), ("true", "false"), ("y", "n"))))
_WORD = re.compile(r"[\w-]+")
#: Characters after an id in a question that rules look at.
SHOWN_AFTER = 600

#: What tells two decisions apart when their ids and policies do not count.
DecisionKey = tuple[str, str, tuple[tuple[str, str], ...]]


class RequestText:
    """The texts of a whole request, read once for the rules."""

    def __init__(self, request: ValidRequest) -> None:
        self.context = request.context
        self.decisions = request.decisions

    @cached_property
    def context_characters(self) -> int:
        """Characters of the context as the model reads it; 0 when it says nothing."""
        if isinstance(self.context, dict | list | tuple) and not self.context:
            return 0
        return len(render_value(self.context).strip())

    @cached_property
    def read(self) -> ReadContext:
        """The context as a base model reads it."""
        return read_context(render_context(self.context))

    @cached_property
    def context_fields(self) -> frozenset[str]:
        """Every key in the context, at any depth."""
        return frozenset(_keys(self.context))

    @cached_property
    def context_words(self) -> frozenset[str]:
        """Every word in the context's texts."""
        return frozenset(word for text in texts_in(self.context) for word in _WORD.findall(text))

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of all decisions."""
        return frozenset(decision.id for decision in self.decisions)

    @cached_property
    def outcomes(self) -> frozenset[str]:
        """The names of every decision's outcomes."""
        return frozenset(name for decision in self.decisions for name in decision.outcomes.names)

    @cached_property
    def straight_outcomes(self) -> dict[str, tuple[str, ...]]:
        """The names of each decision's outcomes as ``straighten`` gives them, by its id.

        Names longer than the words that rules look at after an id are left out.
        """
        return {
            decision.id: tuple(
                straighten(name) for name in decision.outcomes.names if len(name) <= SHOWN_AFTER
            )
            for decision in self.decisions
        }

    @cached_property
    def alike(self) -> dict[DecisionKey, list[Decision]]:
        """The decisions by their question and outcomes."""
        decisions_by_key: dict[DecisionKey, list[Decision]] = {}
        for decision in self.decisions:
            decisions_by_key.setdefault(decision_key(decision), []).append(decision)
        return decisions_by_key


@dataclass(frozen=True)
class Subject:
    """One decision of a request."""

    decision: Decision
    request: RequestText

    @property
    def kind(self) -> str:
        """``single``, ``binary`` or ``ordinal``."""
        return self.decision.kind

    @property
    def names(self) -> tuple[str, ...]:
        """The outcomes' names."""
        return self.decision.outcomes.names

    @cached_property
    def question(self) -> QuestionText:
        """The question as sentences."""
        return read_question(self.decision.question)

    @cached_property
    def descriptions(self) -> tuple[str, ...]:
        """One text per outcome, empty where there is no description."""
        return tuple(
            "" if description is None else render_value(description).strip()
            for description in self.decision.outcomes.descriptions
        )

    @cached_property
    def ways_out(self) -> frozenset[str]:
        """The outcomes whose name takes the cases that fit no other."""
        return frozenset(name for name in self.names if is_way_out(name))

    @cached_property
    def is_yes_no(self) -> bool:
        """Whether its outcomes are yes and no, or true and false."""
        return len(self.names) == 2 and frozenset(map(normalise, self.names)) in _YES_NO

    @cached_property
    def scale(self) -> str | None:
        """Which ordered scale its names are, when they are one."""
        return name_scale(self.names)


def decision_key(decision: Decision) -> DecisionKey:
    """Return a key of a decision's question and outcomes; their order counts where it matters."""
    outcomes = [
        (name, "" if description is None else normalise(render_value(description)))
        for name, description in zip(
            decision.outcomes.names, decision.outcomes.descriptions, strict=True
        )
    ]
    if decision.kind == "single":
        outcomes.sort()
    question = decision.question
    if not isinstance(question, str):
        question = json.dumps(question, ensure_ascii=False, sort_keys=True)
    return decision.kind, normalise(question).rstrip("?"), tuple(outcomes)


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple):
        for item in items:
            yield from _keys(item)
