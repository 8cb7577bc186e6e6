"""The rules by name, in the order of their findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steelyard.decisions.lint import (
    contexts,
    outcomes,
    policies,
    questions,
    references,
    requests,
    rubrics,
)
from steelyard.decisions.lint.subjects import Subject
from steelyard.decisions.lint.wire import Severity
from steelyard.decisions.wire import KINDS, Kind

#: What looks at one decision and gives a message where it finds something.
Check = Callable[[Subject], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    check: Check
    severity: Severity
    summary: str
    kinds: tuple[Kind, ...] = KINDS

    @property
    def name(self) -> str:
        """The rule's name on the wire."""
        return self.check.__name__


_SINGLE: tuple[Kind, ...] = ("single",)
_ORDINAL: tuple[Kind, ...] = ("ordinal",)
_BINARY: tuple[Kind, ...] = ("binary",)

RULES: tuple[Rule, ...] = (
    Rule(
        questions.negation,
        "warning",
        "The question negates (not, never, without, fail to), so that yes means no.",
    ),
    Rule(
        outcomes.no_way_out,
        "warning",
        "No outcome takes the cases that fit none of them, such as other or unclear.",
        _SINGLE,
    ),
    Rule(
        questions.compound_question,
        "warning",
        'The question asks two things: two question marks, or predicates joined by "and" or "or".',
    ),
    Rule(
        outcomes.vague_outcome,
        "info",
        "A name without a description means nothing: a letter, a number, option 1, misc.",
        _SINGLE,
    ),
    Rule(
        outcomes.missing_descriptions,
        "info",
        "None of four or more outcomes is described, or some are and others not.",
        _SINGLE,
    ),
    Rule(
        outcomes.overlapping_outcomes,
        "warning",
        "Two names or descriptions are nearly equal, or one name is part of another.",
        _SINGLE,
    ),
    Rule(
        outcomes.duplicate_descriptions,
        "warning",
        "Two outcomes or levels have the same description.",
        ("single", "ordinal"),
    ),
    Rule(
        outcomes.too_many_outcomes,
        "info",
        "There are more than 26 outcomes; decide among groups first.",
        _SINGLE,
    ),
    Rule(
        rubrics.unordered_levels,
        "warning",
        "Levels are numbers out of order, or the rubric reads high before low.",
        _ORDINAL,
    ),
    Rule(
        rubrics.unanchored_rubric,
        "warning",
        "Lines of the rubric repeat the level's number, or differ by a word of degree.",
        _ORDINAL,
    ),
    Rule(rubrics.too_many_levels, "info", "There are more than 10 levels.", _ORDINAL),
    Rule(
        outcomes.binary_as_single,
        "info",
        "The outcomes are yes and no, or true and false; use the kind binary.",
        _SINGLE,
    ),
    Rule(
        outcomes.scale_as_single,
        "info",
        "The outcomes are levels in order (low, medium, high; 1 to 5); use the kind ordinal.",
        _SINGLE,
    ),
    Rule(
        questions.no_statement,
        "info",
        "Grammar makes no statement of a yes/no question, such as one that asks which of two.",
        _BINARY,
    ),
    Rule(
        questions.arithmetic_question,
        "warning",
        "The question asks to count, to add up, or to compare numbers or dates.",
    ),
    Rule(
        questions.leading_question,
        "info",
        "The question or a description gives the answer away: isn't it, obviously, surely.",
    ),
    Rule(
        references.references_ids,
        "warning",
        "The question names another decision's id, or the previous question.",
    ),
    Rule(
        questions.context_in_question,
        "info",
        "The question holds over 1,500 characters, or is long and longer than the context.",
    ),
    Rule(
        references.missing_field_reference,
        "warning",
        "The question names a field in back quotes that the JSON context does not have.",
    ),
    Rule(
        outcomes.long_outcome_names,
        "warning",
        "A name has over 500 characters, or over 80 and no description.",
        _SINGLE,
    ),
    Rule(
        requests.duplicate_questions,
        "info",
        "Two decisions ask the same question with the same outcomes.",
    ),
    Rule(
        policies.unreachable_abstain,
        "info",
        "The threshold for abstaining is at or below one over the number of outcomes.",
    ),
    Rule(
        policies.dominated_action,
        "info",
        "An action costs at least as much as another for every outcome, so it is never chosen.",
    ),
    Rule(requests.empty_context, "info", "The context is blank."),
    Rule(contexts.unread_language, "warning", "The context is in another language than English."),
    Rule(contexts.quoted_mail, "info", "The context quotes the mail that it answers."),
    Rule(contexts.markup, "info", "The context has HTML around its text."),
    Rule(contexts.long_context, "info", "The context has over 2,400 characters."),
)
